"""The atlas: for every model and task, what theory predicts and how many seeds have learned it."""

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile

from orch.analysis.board import Board, BoardCell
from orch.sweeps.measured import Row, accuracies_by_length, measured
from orch.sweeps.selection import LEARNED
from orch.tasks import Task
from orch.tasks.algebra import Algebra, Family, Prediction, Verdict, analyse, predict

SWEEP = "atlas"


class TaskKind(StrEnum):
    """The kinds of tasks that algebra distinguishes, from the easiest for linear recurrences to the hardest."""

    STAR_FREE = "star-free"
    COMMUTATIVE = "commutative group"
    SOLVABLE = "solvable group"
    WITH_GROUPS = "forgets, and has groups"
    UNSOLVABLE = "not solvable"
    UNKNOWN = "not computed"
    """The monoid is too large to be enumerated."""


FAMILIES = (
    Family.POSITIVE_DIAGONAL,
    Family.POSITIVE_REFLECTIONS,
    Family.SIGNED_DIAGONAL,
    Family.ROTATIONS,
    Family.COMPLEX_DIAGONAL,
    Family.FADING,
    Family.BOUNDED_DEPTH,
    Family.REFLECTIONS,
    Family.DENSE,
    Family.NONLINEAR,
)
"""The families of models in the order of the atlas."""


class Outcome(StrEnum):
    """How theory and measurement compare on a tile."""

    AGREES = "agrees"
    NOT_FOUND = "not found"
    """Theory says that some weights track the task, and no seed found them."""
    UNFORESEEN = "unforeseen"
    """Theory says that no weights track the task at every length, and a seed has learned it."""
    NO_EVIDENCE = "no evidence"
    """Theory rules the task out and no seed has learned it, but the model has learned no other task either."""
    NO_PREDICTION = "no prediction"
    NOT_MEASURED = "not measured"
    """No trial is finished, or too few to tell."""


@dataclass(frozen=True)
class Tile:
    """One model on one task."""

    model: str
    """Title of the model and its variant."""
    task: Task
    kind: TaskKind
    family: Family
    prediction: Prediction
    joined: BoardCell
    learns_another: bool = False
    """Whether a seed of the same model has learned some task of the atlas: without it, a failure is no evidence."""

    @property
    def num_finished(self) -> int:
        """Seeds with a measured accuracy at the test length."""
        return len(self.accuracies)

    @property
    def num_learned(self) -> int:
        """Seeds whose accuracy at the test length is at least `LEARNED`."""
        return sum(accuracy >= LEARNED for accuracy in self.accuracies.values())

    @property
    def share(self) -> float | None:
        """Share of the finished seeds that have learned the task; None if none is finished."""
        return self.num_learned / self.num_finished if self.accuracies else None

    @functools.cached_property
    def accuracies(self) -> dict[str, float]:
        """Accuracy at the test length by trial id."""
        scores = {row["trial_id"]: measured(row, "ood_accuracy") for row in self.joined.finished}
        return {trial_id: score for trial_id, score in scores.items() if score is not None}

    @property
    def by_length(self) -> dict[int, float]:
        """Best accuracy over the seeds at each tested length."""
        found: dict[int, float] = {}
        for row in self.joined.finished:
            for length, accuracy in accuracies_by_length(row).items():
                found[length] = max(accuracy, found.get(length, accuracy))
        return dict(sorted(found.items()))

    @property
    def remark(self) -> str:
        """What the measurement says about a disagreement: whether the model failed to fit, or to hold."""
        if self.outcome is Outcome.UNFORESEEN:
            learned = [row for row in self.joined.finished if self.accuracies.get(row["trial_id"], 0.0) >= LEARNED]
            gaps = [_first_failing(row) for row in learned]
            holds = "holds at all tested lengths" if None in gaps else f"fails at {max(filter(None, gaps))} inputs"
            return f"{holds}; theory speaks of every length, or of a limit that is not reached here"
        best = self.best_in_validation
        if self.outcome is not Outcome.NOT_FOUND or best is None:
            return ""
        if best < LEARNED:
            return f"not fitted at trained lengths either ({best:.2f}): a question of training, not of length"
        fitted = [row for row in self.joined.finished if (measured(row, "validation_accuracy") or 0.0) >= LEARNED]
        held = max((length for row in fitted for length in _held(row)), default=None)
        return "fits only trained lengths" if held is None else f"fits trained lengths and holds up to {held} inputs"

    @property
    def best_in_validation(self) -> float | None:
        """Best accuracy over the seeds at trained lengths."""
        scores = (measured(row, "validation_accuracy") for row in self.joined.finished)
        return max((score for score in scores if score is not None), default=None)

    @property
    def outcome(self) -> Outcome:
        """How theory and measurement compare. Success is final; failure counts only once every seed is finished.

        A failure agrees with theory only if the same model has learned some task: it may else be that nothing trains.
        """
        verdict = self.prediction.verdict
        settled = self.num_finished == len(self.joined.cell.trials)
        if not self.accuracies or not (self.num_learned or settled):
            return Outcome.NOT_MEASURED
        if verdict is Verdict.DEPENDS:
            return Outcome.NO_PREDICTION
        if self.num_learned:
            return Outcome.AGREES if verdict is Verdict.CAN else Outcome.UNFORESEEN
        if verdict is Verdict.CAN:
            return Outcome.NOT_FOUND
        return Outcome.AGREES if self.learns_another else Outcome.NO_EVIDENCE


@dataclass(frozen=True)
class Atlas:
    """The tiles, whose tasks are ordered by algebra and whose models are ordered by family."""

    tiles: Sequence[Tile]
    test_length: int

    @property
    def tasks(self) -> dict[Task, TaskKind]:
        """The tasks with their kinds, in the order of columns."""
        return {tile.task: tile.kind for tile in self.tiles}

    @property
    def models(self) -> dict[str, Family]:
        """The titles of models with their families, in the order of rows."""
        return {tile.model: tile.family for tile in self.tiles}

    def having(self, *outcomes: Outcome) -> list[Tile]:
        """Return the tiles with one of these outcomes."""
        return [tile for tile in self.tiles if tile.outcome in outcomes]

    @property
    def disagreements(self) -> list[Tile]:
        """The tiles where theory and measurement disagree, those that theory rules out first."""
        return [*self.having(Outcome.UNFORESEEN), *self.having(Outcome.NOT_FOUND)]

    @property
    def num_trials(self) -> int:
        return sum(len(tile.joined.finished) for tile in self.tiles)

    @property
    def summary(self) -> str:
        """The number of tiles with each outcome, in words."""
        counts = Counter(tile.outcome for tile in self.tiles)
        measured_tiles = len(self.tiles) - counts[Outcome.NOT_MEASURED]
        predicted = measured_tiles - counts[Outcome.NO_PREDICTION]
        return (
            f"{measured_tiles:,} of {len(self.tiles):,} tiles are measured. Theory predicts {predicted:,} of them: it"
            f" agrees with {counts[Outcome.AGREES]:,}, {counts[Outcome.NOT_FOUND]:,} that it allows were not learned by"
            f" any seed, and {counts[Outcome.UNFORESEEN]:,} that it rules out were learned."
            f" {counts[Outcome.NO_EVIDENCE]:,} that it rules out are no evidence: the model has not learned any task."
        )


def read_atlas(board: Board) -> Atlas:
    """Return the atlas by the results of a board, however many there are."""
    cells = board.cells(SWEEP)
    found = [tile for tile in map(_tile, cells) if tile is not None]
    able = {tile.model for tile in found if tile.num_learned}
    tiles = [replace(tile, learns_another=tile.model in able) for tile in found]
    kinds, families = list(TaskKind), list(FAMILIES)
    tiles.sort(key=lambda tile: (families.index(tile.family), kinds.index(tile.kind), _size(tile.task)))
    return Atlas(tiles, cells[0].cell.example.test_length)


def _tile(joined: BoardCell) -> Tile | None:
    trial = joined.cell.example
    transitions = trial.model.transitions
    if transitions is None:
        return None
    algebra = algebra_of(trial.task)
    title = type(trial.model).title_of(joined.cell.variant)
    return Tile(title, trial.task, kind_of(algebra), transitions.family, predict(algebra, *transitions), joined)


@functools.cache
def algebra_of(task: Task) -> Algebra:
    """Return the algebra of a task, which takes a second for the largest."""
    return analyse(task)


def kind_of(algebra: Algebra) -> TaskKind:
    """Return the kind of a task by its algebra."""
    if algebra.is_aperiodic:
        return TaskKind.STAR_FREE
    if algebra.is_solvable is False:
        return TaskKind.UNSOLVABLE
    if algebra.is_aperiodic is None or algebra.is_solvable is None:
        return TaskKind.UNKNOWN
    if not algebra.is_group:
        return TaskKind.WITH_GROUPS
    return TaskKind.COMMUTATIVE if algebra.is_commutative else TaskKind.SOLVABLE


def _first_failing(row: Row) -> int | None:
    """Return the shortest tested length at which a trial is below `LEARNED`; None if there is none."""
    scores = accuracies_by_length(row).items()
    return next((length for length, accuracy in scores if accuracy < LEARNED), None)


def _held(row: Row) -> list[int]:
    """Return the tested lengths of a trial before the first one at which it fails."""
    scores = accuracies_by_length(row).items()
    return [length for length, _ in takewhile(lambda each: each[1] >= LEARNED, scores)]


def _size(task: Task) -> int:
    return algebra_of(task).num_elements or 1 << 30
