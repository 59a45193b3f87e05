"""The finished trials that a command is about: all of a study, or those of sweeps and conditions."""

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from orch.analysis.study import Study
from orch.planning.plan import make_plan
from orch.store.matching import matching_trials
from orch.sweeps.scales import LAPTOP


def selected_trials(
    study: Study, sweeps: Sequence[str] = (), scale: str = LAPTOP.name, where: Collection[str] = ()
) -> pa.Table:
    """Return the rows of finished trials of these sweeps at a scale, or of any sweep, that meet the conditions."""
    trials = study.trials
    if sweeps:
        plan = make_plan(sweeps, scale, (), study.store, catalogue=study.catalogue)
        trials = _only(trials, {each.id for each in plan.trials if each.id})
    if where:
        trials = _only(trials, set(matching_trials(where, trials, study.catalogue)))
    return trials


def _only(trials: pa.Table, ids: Collection[str]) -> pa.Table:
    return trials.filter(pc.is_in(trials["trial_id"], pa.array(sorted(ids), pa.string())))
