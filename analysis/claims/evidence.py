"""What claims are asked of: accuracies by question, published ones or those of a store at one scale."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from orch.analysis.aggregate import COLUMNS, METRICS, scored, summarise
from orch.analysis.published import OOD, TABLES, Key, key_of, published_cells
from orch.sweeps.cell import Cell
from orch.sweeps.experiments import demo
from orch.sweeps.registry import SWEEPS
from orch.sweeps.scales import LAPTOP, SCALES
from orch.sweeps.selection import Results, Row, of_best_rate, rows_by_id

if TYPE_CHECKING:
    from orch.analysis.angles import Rotations
    from orch.store import Store

DEMO = demo.SMALL.name
"""Not a scale of all sweeps, but the demo's own: its cells are questions of the main sweep, asked of smaller models."""
SCALE_NAMES = (*SCALES, DEMO)


class Question(NamedTuple):
    """How well a cell of a sweep does; at the length of the test, unless told otherwise."""

    sweep: str
    key: Key
    split: str = OOD


@dataclass(frozen=True, slots=True)
class Answer:
    accuracy: float | None
    """The best over learning rates and seeds, as in the paper; nothing if no trial is finished."""
    settled: bool
    """Every learning rate was tried: only then has a model failed. Before, it may merely not have learned yet."""
    trial_id: str = ""
    """The trial that has it."""
    chosen: tuple[tuple[str, float], ...] = ()
    """The finished trials of the chosen learning rate, each with its accuracy; the best at the test's length first."""


class Evidence:
    def __init__(
        self,
        answers: Mapping[tuple[Question, str], Answer],
        rotations: Callable[[str, int], "Rotations | None"] = lambda trial_id, modulus: None,
    ):
        self._answers = answers
        self.rotations = rotations
        """The angles in the weights of a trial, for a modulus; nothing if its weights were not kept."""

    @property
    def has_results(self) -> bool:
        return any(answer.accuracy is not None for answer in self._answers.values())

    def ask(self, question: Question, reading: str = "") -> Answer | None:
        """The answer by this reading, where there are several; nothing if nobody has planned to ask."""
        return self._answers.get((question, reading)) or self._answers.get((question, ""))


def published_evidence() -> Evidence:
    """The paper's numbers. Where it gives one twice, the fuller table comes first and counts."""
    answers: dict[tuple[Question, str], Answer] = {}
    for number in published_cells():
        question = Question(TABLES[number.table].sweep, number.key, number.split)
        answers.setdefault((question, ""), Answer(number.accuracy, settled=True))
    return Evidence(answers)


def store_evidence(store: "Store", scale: str, sweeps: Collection[str]) -> Evidence:
    """What a store has of these sweeps at a scale, or of the demo."""
    from orch.analysis.angles import read_rotations

    finished = rows_by_id(store.read("trials", COLUMNS))
    answers: dict[tuple[Question, str], Answer] = {}
    for sweep, cell in _cells(scale, sweeps, Results(lambda: finished)):
        rows = [finished[trial_id] for trial_id in cell.trial_ids if trial_id in finished]
        for split in METRICS:
            question = Question(sweep, key_of(cell), split)
            answers[question, cell.reading] = _answer(cell, rows, split)

    def rotations(trial_id: str, modulus: int) -> "Rotations | None":
        data = store.get_weights(trial_id)
        return None if data is None else read_rotations(data, modulus, f"the file of weights of trial {trial_id}")

    return Evidence(answers, rotations)


def _cells(scale: str, sweeps: Collection[str], results: Results) -> Iterator[tuple[str, Cell]]:
    """Cells with the sweep whose questions they answer."""
    if scale == DEMO:
        yield from (("main", cell) for cell in SWEEPS[DEMO].cells(LAPTOP, results))
        return
    for sweep in sorted(sweeps):
        yield from ((sweep, cell) for cell in SWEEPS[sweep].cells(SCALES[scale], results))


def _answer(cell: Cell, rows: list[Row], split: str) -> Answer:
    settled = cell.learning_rates <= {row["learning_rate"] for row in rows}
    summary = summarise(rows)
    if summary.scores is None:
        return Answer(None, settled)
    score = summary.scores[split]
    chosen = sorted(of_best_rate(rows), key=lambda row: -scored(row[METRICS[OOD]]))
    told = tuple((row["trial_id"], scored(row[METRICS[split]])) for row in chosen)
    return Answer(score.best, settled, score.best_trial, told)
