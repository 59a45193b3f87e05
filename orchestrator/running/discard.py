"""The choice of results to withdraw."""

from orch.core.errors import InvalidSettings, UnknownName
from orch.store import Store
from orch.store.matching import matching_trials


def trials_to_discard(store: Store, where: list[str], trial_ids: list[str]) -> list[str]:
    """Return the ids of finished trials that meet every condition or are named."""
    trials = store.read("trials")
    finished = trials["trial_id"].to_pylist()
    unknown = [trial_id for trial_id in trial_ids if trial_id not in finished]
    if unknown:
        raise InvalidSettings([str(UnknownName("result of trial", each, finished[:50])) for each in unknown])
    return sorted({*trial_ids, *(matching_trials(where, trials) if where else ())})
