"""Evidence for claims: the accuracies of cells by question."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from orch.analysis.aggregate import METRICS
from orch.analysis.angles import Rotations, read_rotations
from orch.analysis.board import Board, BoardCell
from orch.analysis.published import OOD, Key, key_of
from orch.sweeps.experiments import atlas, demo
from orch.sweeps.measured import Row, measured

DEMO, ATLAS = demo.SMALL.name, atlas.SMALL.name


class Question(NamedTuple):
    """The question of how accurate a cell of a sweep is, on a split."""

    sweep: str
    key: Key
    split: str = OOD


@dataclass(frozen=True, slots=True)
class Answer:
    """The results of a cell, on a split."""

    accuracy: float | None
    """Best accuracy over learning rates and seeds, as in the paper; None if it was measured in no trial."""
    settled: bool
    """Whether the cell is settled: see `BoardCell.settled`. Only then can a low accuracy count as a failure."""
    trial_id: str = ""
    """Trial that reached the accuracy."""
    chosen: tuple[tuple[str, float], ...] = ()
    """Finished trials at the chosen learning rate with their accuracies, sorted by accuracy at the test length."""
    by_seed: Mapping[int, tuple[str, float]] = field(default_factory=dict)
    """Trial and accuracy of every seed at that rate, also of seeds that only other sweeps of the store have."""

    def of_seed(self, seed: int) -> "Answer":
        """Return the answer as this seed alone gives it."""
        if seed not in self.by_seed:
            return Answer(None, self.settled)
        trial_id, accuracy = self.by_seed[seed]
        return Answer(accuracy, self.settled, trial_id, ((trial_id, accuracy),))


class Evidence:
    """Answers by question and reading, and access to the weights of trained rotation models."""

    def __init__(
        self,
        answers: Mapping[tuple[Question, str], Answer],
        rotations: Callable[[str, int], "Rotations | None"] = lambda trial_id, modulus: None,
    ):
        self._answers = answers
        self.rotations = rotations
        """Function that reads the angles from the weights of a trial, given its modulus; None without weights."""

    @property
    def has_results(self) -> bool:
        """Whether any cell has a finished trial."""
        return any(answer.accuracy is not None for answer in self._answers.values())

    @property
    def whole(self) -> "Evidence":
        """The evidence of all seeds."""
        return self

    def of_seed(self, seed: int) -> "Evidence":
        """Return the evidence that one seed alone gives, at the chosen learning rates."""
        return _SeedEvidence(self, seed)

    def ask(self, question: Question, reading: str = "") -> Answer | None:
        """Return the answer by a reading, or the one for all readings; None if no such cell is planned."""
        return self._answers.get((question, reading)) or self._answers.get((question, ""))


class _SeedEvidence(Evidence):
    def __init__(self, whole: Evidence, seed: int):
        super().__init__({}, whole.rotations)
        self._whole, self._seed = whole, seed

    @property
    def whole(self) -> Evidence:
        return self._whole

    def ask(self, question: Question, reading: str = "") -> Answer | None:
        answer = self._whole.ask(question, reading)
        return None if answer is None else answer.of_seed(self._seed)


def board_evidence(board: Board, sweeps: Collection[str]) -> Evidence:
    """Return the results of these sweeps at the board's scale, or of the demo if that is the board's scale."""
    answers = {
        (Question(sweep, key, split), reading): _answer(cell, split, rows)
        for (sweep, key, reading), cell in cells_by_key(board, sweeps).items()
        for rows in [board.every_seed(cell)]
        for split in METRICS
    }

    def rotations(trial_id: str, modulus: int) -> Rotations | None:
        data = board.weights(trial_id)
        return None if data is None else read_rotations(data, modulus, f"the file of weights of trial {trial_id}")

    return Evidence(answers, rotations)


def cells_by_key(board: Board, sweeps: Collection[str]) -> dict[tuple[str, Key, str], BoardCell]:
    """Return the cells that answer questions, by sweep, key and reading."""
    return {(sweep, key_of(cell.cell), cell.cell.reading): cell for sweep, cell in _cells(board, sweeps)}


def _cells(board: Board, sweeps: Collection[str]) -> Iterator[tuple[str, BoardCell]]:
    """Yield each cell with the sweep whose questions it answers; the demo answers questions about the main sweep.

    The atlas has a scale of its own, and answers only questions about itself.
    """
    if board.scale.name == DEMO:
        yield from (("main", cell) for cell in board.cells(DEMO))
        return
    if board.scale.name == ATLAS:
        yield from ((ATLAS, cell) for cell in board.cells(ATLAS))
        return
    for sweep in sorted(sweeps):
        yield from ((sweep, cell) for cell in board.cells(sweep))


def _answer(cell: BoardCell, split: str, rows: Mapping[int, Row]) -> Answer:
    if cell.summary.scores is None:
        return Answer(None, cell.settled)
    score = cell.summary.scores[split]
    scores = ((row["trial_id"], measured(row, METRICS[split])) for row in cell.chosen_best_first)
    chosen = tuple((trial_id, accuracy) for trial_id, accuracy in scores if accuracy is not None)
    known = ((seed, row["trial_id"], measured(row, METRICS[split])) for seed, row in rows.items())
    by_seed = {seed: (trial_id, accuracy) for seed, trial_id, accuracy in known if accuracy is not None}
    return Answer(score.best, cell.settled, score.best_trial or "", chosen, by_seed)
