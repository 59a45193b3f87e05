"""The trials that a cell still needs to be settled, each with its probability and its expected seconds."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from orch.analysis.aggregate import METRICS
from orch.analysis.board import BoardCell
from orch.analysis.published import OOD
from orch.planning.plan import LEAST_SECONDS, PlannedTrial
from orch.sweeps.measured import Row, measured
from orch.sweeps.selection import LEARNED, Waiting
from orch.sweeps.trial import Trial


@dataclass(frozen=True, slots=True)
class Need:
    """Trials to run, each with the probability that it is still needed once those before it are finished."""

    trials: tuple[tuple[PlannedTrial, float], ...] = ()
    enough: bool = True
    """Whether these are all the trials that are needed, as far as the present results tell."""

    def __bool__(self) -> bool:
        return bool(self.trials)

    @property
    def seconds(self) -> float:
        """The expected time until it is met."""
        return sum(chance * max(planned.seconds, LEAST_SECONDS) for planned, chance in self.trials)


def together(needs: Iterable[Need]) -> Need:
    """Return the need of several cells, each trial once."""
    found: dict[str, tuple[PlannedTrial, float]] = {}
    enough = True
    for need in needs:
        enough &= need.enough
        for planned, chance in need.trials:
            known = found.get(planned.id)
            found[planned.id] = planned, max(chance, known[1] if known else 0.0)
    return Need(tuple(found.values()), enough)


class CellNeeds:
    """The finished trials and those that are left, by cell: all trials that differ only in learning rate and seeds."""

    def __init__(self, cells: Iterable[BoardCell], left: Iterable[PlannedTrial]):
        self._rows: dict[Trial, dict[str, Row]] = {}
        self._left: dict[Trial, list[PlannedTrial]] = {}
        self._planned: dict[str, PlannedTrial] = {}
        self._awaited: dict[Trial, tuple[str, ...]] = {}
        self._single_rate: set[str] = set()
        self._tried: Counter[tuple[str, str, float]] = Counter()
        self._learned: Counter[tuple[str, str, float]] = Counter()
        for cell in cells:
            self._add(cell)
        for planned in sorted(left, key=lambda each: each.trial.init_seed):
            self._left.setdefault(planned.trial.stackable(), []).append(planned)
            self._planned[planned.id] = planned

    def _add(self, cell: BoardCell) -> None:
        key = cell.cell.example.stackable()
        rows = self._rows.setdefault(key, {})
        for row in cell.finished:
            if row["trial_id"] not in rows:
                rows[row["trial_id"]] = row
                kind = self._kind(key, row["learning_rate"])
                self._tried[kind] += 1
                self._learned[kind] += _has_learned(row, OOD)
        if len(cell.cell.learning_rates) == 1:
            self._single_rate.update(cell.cell.trial_ids)
        waiting = [each for each in cell.cell.trials if isinstance(each, Waiting)]
        if waiting:
            self._awaited[key] = tuple(trial.id for each in waiting for trial in each.awaits)

    @property
    def cells(self) -> list[Trial]:
        """The cells with trials that are left or wait, each as one trial without learning rate and seeds."""
        return list(dict.fromkeys([*self._left, *self._awaited]))

    def rows(self, cell: Trial) -> list[Row]:
        """Return the finished trials of a cell."""
        return list(self._rows.get(cell, {}).values())

    def chance(self, cell: Trial, rate: float) -> float:
        """Return the probability that a trial learns: the mean of a Beta posterior over its model, task and rate."""
        kind = self._kind(cell, rate)
        return (1 + self._learned[kind]) / (2 + self._tried[kind])

    def need(self, cell: Trial, split: str = OOD) -> Need:
        """Return what decides whether any trial learns a cell: one trial of each learning rate, until one learns.

        A cell that is planned with a single learning rate needs every seed of it, as `BoardCell.settled` says. A cell
        that waits for the results of others needs those.
        """
        rows = self.rows(cell)
        if any(_has_learned(row, split) for row in rows):
            return Need()
        if cell in self._awaited:
            awaited = dict.fromkeys(self._awaited[cell])
            return Need(tuple((self._planned[each], 1.0) for each in awaited if each in self._planned))
        if alone := [each for each in self._left.get(cell, ()) if each.id in self._single_rate]:
            return self._until_one_learns(cell, alone)
        return self._untried_rates(cell, {row["learning_rate"] for row in rows})

    def need_seeds(self, cell: Trial, rate: float, seeds: Collection[int], number: int) -> Need:
        """Return so many further seeds of a cell at a learning rate, besides those that it has, after untried rates."""
        untried = self._untried_rates(cell, {row["learning_rate"] for row in self.rows(cell)})
        alike = [each for each in self._left.get(cell, ()) if each.trial.learning_rate == rate]
        found = [(each, 1.0) for each in alike if each.trial.init_seed not in seeds][:number]
        return Need((*untried.trials, *found), len(found) == number)

    def _untried_rates(self, cell: Trial, tried: Collection[float]) -> Need:
        first: dict[float, PlannedTrial] = {}
        for each in self._left.get(cell, ()):
            if each.trial.learning_rate not in tried:
                first.setdefault(each.trial.learning_rate, each)
        return self._until_one_learns(cell, first.values())

    def _until_one_learns(self, cell: Trial, trials: Iterable[PlannedTrial]) -> Need:
        """Return the need of these trials, the likeliest to learn first."""
        found, needed = [], 1.0
        for each in sorted(
            trials, key=lambda each: (-self.chance(cell, each.trial.learning_rate), each.trial.learning_rate)
        ):
            found.append((each, needed))
            needed *= 1 - self.chance(cell, each.trial.learning_rate)
        return Need(tuple(found))

    @staticmethod
    def _kind(cell: Trial, rate: float) -> tuple[str, str, float]:
        return cell.model.name, cell.task.name, rate


def _has_learned(row: Row, split: str) -> bool:
    value = measured(row, METRICS[split])
    return value is not None and value >= LEARNED
