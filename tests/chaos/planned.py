"""The trials of every round, and what an undisturbed run of each one, alone, comes to."""

import functools
from pathlib import Path

from orch.planning.plan import PlannedTrial
from orch.running.requests import Request
from orch.store import SCHEMAS, Store, curve_rows, trial_row
from orch.store.columns import PROVENANCE

FILE = str(Path(__file__).with_name("twenty.py"))

NUMBERS = {
    "trials": [name for name in SCHEMAS["trials"].names if name not in {"seconds", *(c.name for c in PROVENANCE)}],
    "curves": [name for name in SCHEMAS["curves"].names if name not in ("attempt_id", "seconds")],
}
"""The columns that are the same in every run of a trial."""


@functools.cache
def planned() -> tuple[PlannedTrial, ...]:
    return tuple(Request.read([FILE], None, ()).plan(None).trials)


@functools.cache
def planned_ids() -> frozenset[str]:
    return frozenset(each.id for each in planned())


def write_expected(location: str) -> None:
    """Train every trial alone, and write the results to a store."""
    from orch.training.checkpoints import model_bytes
    from orch.training.train import train

    store = Store.open(location)
    for each in planned():
        result = train(each.trial)
        store.put_weights(each.id, model_bytes(result))
        store.write_trials([trial_row(result, {"attempt_id": "undisturbed"})], curve_rows(result, "undisturbed"))
