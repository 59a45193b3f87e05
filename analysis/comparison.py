"""Every published number with ours beside it."""

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from orch.analysis.aggregate import METRICS, CellSummary, Score, scored, summarise
from orch.analysis.published import TABLES, Key, PublishedCell, key_of, published_cells
from orch.sweeps.cell import Cell
from orch.sweeps.registry import SWEEPS
from orch.sweeps.scales import PAPER, Scale
from orch.sweeps.selection import Results, Row


@dataclass(frozen=True, slots=True)
class Comparison:
    published: PublishedCell
    reading: str
    """Which of several cells of ours this is, where the paper leaves open which it means."""
    trial_ids: tuple[str, ...]
    """The trials of ours that it rests on, finished or not; what still waits for others has no id yet."""
    learning_rates: frozenset[float]
    """Each that the cell is to be trained with."""
    finished: tuple[Row, ...]
    """Those of its trials that are, the best first."""
    summary: CellSummary
    repeats: PublishedCell | None
    """An earlier number, of those compared, about the very same trials: then this one does not count again."""

    @property
    def score(self) -> Score | None:
        return None if self.summary.scores is None else self.summary.scores[self.published.split]

    @property
    def ours(self) -> float | None:
        """By the paper's reading."""
        return None if self.score is None else self.score.best

    @property
    def difference(self) -> float | None:
        return None if self.ours is None else self.ours - self.published.accuracy

    @property
    def distinct(self) -> PublishedCell:
        """The number as which it counts."""
        return self.repeats or self.published

    @property
    def also(self) -> tuple[PublishedCell, ...]:
        """The same number in other tables, compared or not; its value there may be another."""
        same = _published_again().get(self.published, ())
        return tuple(number for number in same if number != self.published)


def compare(
    scale: Scale,
    finished: Mapping[str, Row],
    failed: Collection[str] = (),
    tables: Iterable[str] = tuple(TABLES),
    results: Results | None = None,
) -> list[Comparison]:
    """Published numbers in the order of their tables, each with every cell of ours that stands beside it.

    What a scale does not plan (a modulus it leaves out) is not there.
    """
    found: list[Comparison] = []
    seen: dict[tuple[tuple[str, ...], str], PublishedCell] = {}
    for number, cell in _beside(scale, results or Results(lambda: finished), set(tables)):
        ids = tuple(cell.trial_ids)
        rows = [finished[trial_id] for trial_id in ids if trial_id in finished]
        best_first = sorted(rows, key=lambda row: -scored(row[METRICS[number.split]]))
        num_failed = sum(trial_id in failed and trial_id not in finished for trial_id in ids)
        first = seen.setdefault((ids, number.split), number)
        summary = summarise(rows, len(cell.trials), num_failed)
        found.append(
            Comparison(
                published=number,
                reading=cell.reading,
                trial_ids=ids,
                learning_rates=cell.learning_rates,
                finished=tuple(best_first),
                summary=summary,
                repeats=None if first is number else first,
            )
        )
    return found


def _beside(scale: Scale, results: Results, tables: Collection[str]) -> Iterator[tuple[PublishedCell, Cell]]:
    cells: dict[tuple[str, Key], list[Cell]] = {}
    for sweep in {TABLES[name].sweep for name in tables}:
        for cell in SWEEPS[sweep].cells(scale, results):
            cells.setdefault((sweep, key_of(cell)), []).append(cell)
    for number in published_cells():
        if number.table in tables:
            for cell in cells.get((TABLES[number.table].sweep, number.key), ()):
                yield number, cell


@functools.cache
def _published_again() -> dict[PublishedCell, tuple[PublishedCell, ...]]:
    """Numbers about the very same trials as published, for each that is not alone."""
    same: dict[tuple[tuple[str, ...], str], dict[PublishedCell, None]] = {}
    for number, cell in _beside(PAPER, Results.none(), TABLES):
        same.setdefault((tuple(cell.trial_ids), number.split), {})[number] = None
    return {number: tuple(numbers) for numbers in same.values() if len(numbers) > 1 for number in numbers}
