"""Packs of trials on several tasks and moduli: which trials can share a program, and which of them should. No torch.

A pack makes its calls once for all trials, so cells with few trials gain by sharing one. But every trial of a pack is
padded to the largest vocabulary, and each vocabulary adds calls on a CPU. So trials are sorted by vocabulary, and
neighbours are joined where the time saved is worth it.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from orch.planning.pack_size import PACES, WORTH_IT, memory, pace_of, pack_size, stacks_exactly
from orch.planning.plan import PlannedTrial
from orch.planning.step_time import step_seconds
from orch.sweeps.trial import Trial
from orch.tasks import Task

CALLS_PER_VOCABULARY = 0.4e-3
"""Seconds that one more vocabulary adds to a step on a CPU. Fits packs of 27 with one and with three, at width 16."""
LARGEST_ON_A_CPU = 27
SEARCHED_PACKS = 10
"""Packs of the largest size in a cell whose trials are cut into packs by a search for the cheapest cuts."""
CACHE = 2e6
"""Bytes of states of a training batch beyond which packs of more than nine became slower on a CPU, as measured for
blocks of two at widths 16, 32 and 64."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LargestTask(Task):
    """A stand-in with as many tokens as any of several tasks, for estimates of what a padded trial takes."""

    tasks: tuple[Task, ...] = ()

    @property
    def slots(self) -> tuple[range, ...]:
        """Slots of the task with the fewest symbols per input: under `supervision` it has the most labels."""
        return min((task.slots for task in self.tasks), key=len)

    @property
    def num_readable(self) -> int:
        return max(task.num_readable for task in self.tasks)

    @property
    def vocabulary(self) -> int:
        return max(task.vocabulary for task in self.tasks)

    def num_tokens(self, num_inputs: int) -> int:
        return max(task.num_tokens(num_inputs) for task in self.tasks)


def padded(trials: Sequence[Trial]) -> Trial:
    """Return a trial that takes what each of these trials takes in one pack."""
    tasks = tuple(dict.fromkeys(trial.task for trial in trials))
    return trials[0] if len(tasks) == 1 else replace(trials[0], task=LargestTask(tasks=tasks))


def shared_program(trial: Trial, device: str) -> Hashable:
    """Return what the trials of a pack have in common.

    On a CPU it includes all that a trial's last bit depends on: the length of its sequences (padding would be read),
    and the model's choices between ways to compute the same. On a GPU stacks round differently anyway.
    """
    common = trial.packable()
    if not (device.startswith("cpu") and trial.model.crosses_cells):
        return common
    num_tokens = trial.task.num_tokens(trial.max_inputs)
    choices = [trial.model.choices(trial.vocabulary, count * num_tokens) for count in sorted(trial.batch_sizes)]
    return common, num_tokens, *choices


def group_trials(planned: Iterable[PlannedTrial], device: str, most: int | None = None) -> list[list[PlannedTrial]]:
    """Group trials into packs of at most `most`, or of the size that the planner chooses.

    The trials of a pack use the same user code, or none, so that nobody's code can change a trial of others.
    """
    cells: dict[Trial, list[PlannedTrial]] = {}
    for each in planned:
        cells.setdefault(each.trial.stackable(), []).append(each)
    programs: dict[Hashable, list[list[PlannedTrial]]] = {}
    for cell, members in cells.items():
        programs.setdefault((_packages(cell), shared_program(cell, device)), []).append(members)
    return [pack for alike in programs.values() for pack in _packs(alike, device, most)]


def _packages(trial: Trial) -> frozenset[str]:
    """Return the packages of the user code that defines a trial's model or task; none if both are built in."""
    return frozenset(type(part).__module__.partition(".")[0] for part in (trial.model, trial.task)) - {"orch"}


def _packs(cells: list[list[PlannedTrial]], device: str, most: int | None) -> list[list[PlannedTrial]]:
    """Pack cells whose trials could share one program: each by itself, or across cells if that is clearly faster."""
    apart = []
    for members in cells:
        size = pack_size(members[0].trial, len(members), device, most, members[0].probed, members[0].doctor_times)
        apart += [members[start : start + size] for start in range(0, len(members), size)]
    first = cells[0][0].trial
    if len(cells) == 1 or not (first.model.packs if pace_of(first, device) is PACES["gpu"] else stacks_exactly(first)):
        return apart
    most = most or _largest_across(first, device)
    across: list[list[PlannedTrial]] = []
    ordered: list[PlannedTrial] = []
    for cell in sorted(cells, key=lambda members: _order(members[0].trial)):
        whole, rest = _whole_packs(cell, device, most)
        across += whole
        ordered += rest
    across += _cheapest_cuts(ordered, device, most)
    taken = [_total_seconds(packs, device) for packs in (apart, across)]
    return across if taken[0] >= WORTH_IT * taken[1] else apart


def _whole_packs(
    cell: list[PlannedTrial], device: str, most: int
) -> tuple[list[list[PlannedTrial]], list[PlannedTrial]]:
    """Return packs of the fastest size of a cell with many trials, and those that are left to be packed with others.

    A search for the cheapest cuts takes as many steps as there are trials, times `most`; almost all of a large cell
    would be cut like this anyway.
    """
    num_whole = len(cell) - SEARCHED_PACKS * most
    if num_whole <= 0:
        return [], cell
    trials = [each.trial for each in cell[:most]]
    size = min(range(1, most + 1), key=lambda size: _seconds_if_it_fits(trials[:size], device) / size)
    starts = range(0, num_whole - num_whole % size, size)
    return [cell[start : start + size] for start in starts], cell[len(starts) * size :]


def _order(cell: Trial) -> tuple[int, ...]:
    """Sort cells so that neighbours need little padding."""
    return cell.task.num_tokens(cell.max_inputs), cell.vocabulary.readable, cell.vocabulary.size


def _largest_across(trial: Trial, device: str) -> int:
    pace = pace_of(trial, device)
    if pace is PACES["gpu"]:
        return pace.largest_pack
    states = 4 * trial.batch_size * trial.task.num_tokens(trial.max_inputs) * trial.model.width
    return max(pace.largest_pack, min(LARGEST_ON_A_CPU, int(CACHE / states)))


def _seconds(trials: Sequence[Trial], device: str) -> float:
    """Predict the seconds of a training step of a pack."""
    num_vocabularies = len({trial.vocabulary for trial in trials})
    calls = CALLS_PER_VOCABULARY * (num_vocabularies - 1) if device.startswith("cpu") else 0.0
    return calls + step_seconds(padded(trials), len(trials), device)


def _seconds_if_it_fits(trials: Sequence[Trial], device: str) -> float:
    """Predict the seconds of a training step of a pack: infinite for one that takes too much memory."""
    fits = len(trials) == 1 or memory(padded(trials), len(trials), device) <= pace_of(trials[0], device).memory
    return _seconds(trials, device) if fits else float("inf")


def _total_seconds(packs: Iterable[list[PlannedTrial]], device: str) -> float:
    """Predict the seconds of a training step of each of these packs, added up."""
    known: dict[Hashable, float] = {}
    total = 0.0
    for pack in packs:
        key = (len(pack), *dict.fromkeys(each.trial.stackable() for each in pack))
        if key not in known:
            known[key] = _seconds([each.trial for each in pack], device)
        total += known[key]
    return total


def _cheapest_cuts(ordered: list[PlannedTrial], device: str, most: int) -> list[list[PlannedTrial]]:
    """Cut a list of trials into packs that take the least time in all, and of those into packs of even size."""
    trials = [each.trial for each in ordered]
    cells = {task: number for number, task in enumerate(dict.fromkeys(trial.task for trial in trials))}
    cell_of = [cells[trial.task] for trial in trials]
    known: dict[tuple[int, int, int], float] = {}

    def seconds(start: int, stop: int) -> float:
        pack = trials[start:stop]
        key = cell_of[start], cell_of[stop - 1], len(pack)
        if key not in known:
            known[key] = _seconds_if_it_fits(pack, device)
        return known[key]

    best: list[tuple[float, int, int]] = [(0.0, 0, 0)]
    """For each number of trials: the least seconds, the sum of the squared sizes, and where the last pack begins."""
    for stop in range(1, len(trials) + 1):
        best.append(
            min(
                (round(best[start][0] + seconds(start, stop), 9), best[start][1] + (stop - start) ** 2, start)
                for start in range(max(0, stop - most), stop)
            )
        )
    packs, stop = [], len(trials)
    while stop:
        start = best[stop][2]
        packs.append(ordered[start:stop])
        stop = start
    return packs[::-1]
