"""The packs of planned trials, in the order to run them, and a plan with the time that each trial takes in its pack.

`across_cells` decides which trials share a pack, and `pack_size` how many. No torch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from orch.planning.across_cells import group_trials
from orch.planning.plan import LEAST_SECONDS, Plan, PlannedTrial, TrialState
from orch.sweeps.trial import Trial


def packs_by_value(
    planned: Iterable[PlannedTrial], values: Mapping[str, float], device: str, most: int | None = None
) -> list[list[Trial]]:
    """Group the trials that have a value into packs, those with the most value per second first."""

    def density(pack: list[PlannedTrial]) -> float:
        return sum(values[each.id] for each in pack) / max(_seconds(pack), LEAST_SECONDS)

    wanted = sorted((each for each in planned if each.id in values), key=lambda each: -density([each]))
    packs = group_trials(wanted, device, most)
    return [[each.trial for each in pack] for pack in sorted(packs, key=density, reverse=True)]


def make_packs(
    planned: Iterable[PlannedTrial], device: str, most: int | None = None, cheapest_first: bool = False
) -> list[list[Trial]]:
    """Group trials into packs, in the order to run them.

    The shortest trial of every model and task runs first and alone, so that a broken model or task is noticed early.
    The others are packed with trials that differ only in learning rate, seeds and task, and run longest first, so that
    no worker is left with a long pack at the end; with `cheapest_first` all packs run shortest first. `most` limits the
    size of packs.
    """
    by_length = sorted(planned, key=lambda each: each.seconds, reverse=True)
    shortest = {(each.trial.model.name, each.trial.task.name): each for each in by_length}
    canary_ids = {each.id for each in shortest.values()}
    canaries = [each for each in by_length if each.id in canary_ids]
    packs = group_trials((each for each in by_length if each.id not in canary_ids), device, most)
    longest_first = [[each] for each in canaries] + sorted(packs, key=_seconds, reverse=True)
    order = sorted(longest_first, key=_seconds) if cheapest_first else longest_first
    return [[each.trial for each in pack] for pack in order]


def packed(plan: Plan, most: int | None = None) -> Plan:
    """Return the plan with each trial's seconds in the pack that it would train in; `most` limits their size.

    Trials that wait are packed among themselves.
    """
    left = [planned for planned in plan.trials if planned.left]
    waiting = [
        replace(each, id=str(place)) for place, each in enumerate(plan.trials) if each.state is TrialState.WAITING
    ]
    return plan.in_packs([*make_packs(left, plan.device, most), *make_packs(waiting, plan.device, most)])


def _seconds(pack: list[PlannedTrial]) -> float:
    return sum(each.seconds for each in pack)
