"""The comparison of every published number with ours."""

import functools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from orch.analysis.aggregate import METRICS, CellSummary, Score, best_first
from orch.analysis.board import Board, BoardCell
from orch.analysis.published import TABLES, Key, PublishedCell, key_of, published_cells, tables_of
from orch.sweeps.measured import Row
from orch.sweeps.scales import PAPER, Scale


@dataclass(frozen=True, slots=True)
class Comparison:
    """A published number and one cell of ours that is compared with it."""

    published: PublishedCell
    reading: str
    """Name of the cell among several that the number could mean; empty if there is only one."""
    trial_ids: tuple[str, ...]
    """Trials of the cell, finished or not; a trial that waits for the results of others has no id yet."""
    learning_rates: frozenset[float]
    """Learning rates that the cell is planned with."""
    finished: tuple[Row, ...]
    """Rows of the finished trials, the best first."""
    summary: CellSummary
    repeats: PublishedCell | None
    """The first compared number about the same trials, if it is another one: then this one does not count again."""

    @property
    def score(self) -> Score | None:
        """Our score on the split of the published number; None if it was measured in no trial."""
        score = None if self.summary.scores is None else self.summary.scores[self.published.split]
        return None if score is None or score.best is None else score

    @property
    def ours(self) -> float | None:
        """Our accuracy by the paper's reading: the best over learning rates and seeds."""
        return None if self.score is None else self.score.best

    @property
    def difference(self) -> float | None:
        """Our accuracy less the published one."""
        return None if self.ours is None else self.ours - self.published.accuracy

    @property
    def distinct(self) -> PublishedCell:
        """The number that this comparison counts for."""
        return self.repeats or self.published

    @property
    def also(self) -> tuple[PublishedCell, ...]:
        """Numbers of other tables about the same trials, compared or not; their values may differ."""
        same = _published_again().get(self.published, ())
        return tuple(number for number in same if number != self.published)

    @property
    def other_values(self) -> list[float]:
        """Values of `also` that differ from the published one."""
        values = dict.fromkeys(number.accuracy for number in self.also)
        return [value for value in values if value != self.published.accuracy]


def compare(board: Board, tables: Iterable[str] = tuple(TABLES)) -> list[Comparison]:
    """Compare the published numbers, in the order of their tables, with every cell of ours that each could mean.

    A number whose cell the board's scale does not plan, such as a modulus that it leaves out, is not included. Under a
    protocol nothing is compared, because the published numbers are of the sweeps as they are.
    """
    if board.scale.protocol is not None:
        return []
    found: list[Comparison] = []
    seen: dict[tuple[tuple[str, ...], str], PublishedCell] = {}
    for number, cell in _matches(board, set(tables)):
        ids = tuple(cell.cell.trial_ids)
        first = seen.setdefault((ids, number.split), number)
        found.append(
            Comparison(
                published=number,
                reading=cell.cell.reading,
                trial_ids=ids,
                learning_rates=cell.cell.learning_rates,
                finished=tuple(best_first(cell.finished, METRICS[number.split])),
                summary=cell.summary,
                repeats=None if first is number else first,
            )
        )
    return found


def _matches(board: Board, tables: Collection[str]) -> Iterator[tuple[PublishedCell, BoardCell]]:
    """Yield each published number of these tables with each of our cells that is compared with it."""
    cells: dict[tuple[str, Key], list[BoardCell]] = {}
    for sweep in {TABLES[name].sweep for name in tables}:
        for cell in board.cells(sweep):
            cells.setdefault((sweep, key_of(cell.cell)), []).append(cell)
    for number in published_cells():
        if number.table in tables:
            for cell in cells.get((TABLES[number.table].sweep, number.key), ()):
                yield number, cell


def num_covered(scale: Scale, sweeps: Collection[str], trial_ids: Collection[str] | None = None) -> int:
    """Count the published numbers that these sweeps plan trials for, or those whose trials are all in `trial_ids`."""
    planned = compare(Board(scale), tables_of(sweeps))
    if trial_ids is not None:
        planned = [each for each in planned if all(trial_id in trial_ids for trial_id in each.trial_ids)]
    return len({each.published for each in planned})


@functools.cache
def _published_again() -> dict[PublishedCell, tuple[PublishedCell, ...]]:
    """Return, for each number that is published more than once, all numbers about the same trials."""
    same: dict[tuple[tuple[str, ...], str], dict[PublishedCell, None]] = {}
    for number, cell in _matches(Board(PAPER), TABLES):
        same.setdefault((tuple(cell.cell.trial_ids), number.split), {})[number] = None
    return {number: tuple(numbers) for numbers in same.values() if len(numbers) > 1 for number in numbers}
