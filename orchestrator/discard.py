"""Which results a withdrawal concerns."""

import json

from orchestrator.errors import InvalidSettings, UnknownName
from orchestrator.store import Store
from orchestrator.trial import Trial
from orchestrator.where import parse_where


def matching_trials(store: Store, where: list[str], trial_ids: list[str]) -> list[str]:
    """The ids of finished trials that meet every condition, or are named."""
    table = store.read("trials", ["trial_id", "config"])
    finished = dict(zip(table["trial_id"].to_pylist(), table["config"].to_pylist(), strict=True))
    unknown = [trial_id for trial_id in trial_ids if trial_id not in finished]
    if unknown:
        raise InvalidSettings([str(UnknownName("result of trial", each, list(finished)[:50])) for each in unknown])
    chosen = set(trial_ids)
    if where:
        condition = parse_where(where)
        chosen |= {key for key, config in finished.items() if condition.matches(Trial.from_dict(json.loads(config)))}
    return sorted(chosen)
