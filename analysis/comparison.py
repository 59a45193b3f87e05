"""Every published number with ours beside it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from analysis.aggregate import Summary, summarise
from analysis.published import TABLES, Key, PublishedCell, key_of, published_cells
from orchestrator.cell import Cell
from orchestrator.scales import Scale
from orchestrator.selection import Results, Row
from orchestrator.sweeps import SWEEPS


@dataclass(frozen=True, slots=True)
class Comparison:
    published: PublishedCell
    reading: str
    """Which of several cells of ours this is, where the paper leaves open which it means."""
    trial_ids: tuple[str, ...]
    """The trials of ours that it rests on, finished or not; what still waits for others has no id yet."""
    summary: Summary
    repeats: PublishedCell | None
    """An earlier table's number about the very same trials: then this one does not count again."""

    @property
    def ours(self) -> float | None:
        """By the paper's reading."""
        return None if self.summary.scores is None else self.summary.scores[self.published.split].best

    @property
    def difference(self) -> float | None:
        return None if self.ours is None else self.ours - self.published.accuracy


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
    wanted = set(tables)
    cells = _cells(scale, results or Results(lambda: finished), {TABLES[name].sweep for name in wanted})
    found: list[Comparison] = []
    seen: dict[tuple[tuple[str, ...], str], PublishedCell] = {}
    for number in published_cells():
        if number.table not in wanted:
            continue
        for cell in cells.get((TABLES[number.table].sweep, number.key), ()):
            ids = tuple(cell.trial_ids)
            rows = [finished[trial_id] for trial_id in ids if trial_id in finished]
            num_failed = sum(trial_id in failed and trial_id not in finished for trial_id in ids)
            repeats = seen.setdefault((ids, number.split), number)
            summary = summarise(rows, len(cell.trials), num_failed)
            found.append(Comparison(number, cell.reading, ids, summary, None if repeats is number else repeats))
    return found


def _cells(scale: Scale, results: Results, sweeps: Iterable[str]) -> dict[tuple[str, Key], list[Cell]]:
    found: dict[tuple[str, Key], list[Cell]] = {}
    for sweep in sweeps:
        for cell in SWEEPS[sweep].cells(scale, results):
            found.setdefault((sweep, key_of(cell)), []).append(cell)
    return found


def num_distinct(comparisons: Iterable[Comparison]) -> int:
    """How many numbers these are, counting once what is published twice or read in two ways."""
    return len({each.published for each in comparisons if each.repeats is None})


def num_covered(scale: Scale, sweeps: Collection[str]) -> int:
    """How many published numbers these sweeps plan trials for."""
    tables = [table.name for table in TABLES.values() if table.sweep in sweeps]
    return len({each.published for each in compare(scale, {}, (), tables)})
