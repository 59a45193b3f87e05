"""Trials grouped into packs for workers: alike in all but learning rate and seeds, longest first."""

from collections.abc import Iterable

from orch.planning.pack_size import pack_size
from orch.planning.plan import PlannedTrial
from orch.running.units import Work
from orch.sweeps.trial import Trial


def make_packs(
    planned: Iterable[PlannedTrial], device: str, most: int | None = None, cheapest_first: bool = False
) -> list[Work]:
    """First one trial of every model and task, alone: if a kind is broken, that is soon known. Then packs, the longest
    first, so that none is left to wait for at the end; or all of them cheapest first, where time may run out. `most`
    limits their size; 1 packs nothing."""
    canaries: dict[tuple[str, str], PlannedTrial] = {}
    kinds: dict[Trial, list[PlannedTrial]] = {}
    for each in planned:
        if (each.trial.model.name, each.trial.task.name) not in canaries:
            canaries[each.trial.model.name, each.trial.task.name] = each
        else:
            kinds.setdefault(each.trial.stackable(), []).append(each)
    packs: list[list[PlannedTrial]] = []
    for members in kinds.values():
        size = pack_size(members[0].trial, len(members), device, most)
        packs += [members[start : start + size] for start in range(0, len(members), size)]
    alone = [[each] for each in canaries.values()]
    longest_first = alone + sorted(packs, key=_seconds, reverse=True)
    order = sorted(longest_first, key=_seconds) if cheapest_first else longest_first
    return [Work([each.trial for each in pack]) for pack in order]


def _seconds(pack: list[PlannedTrial]) -> float:
    return sum(each.seconds for each in pack)
