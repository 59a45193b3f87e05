"""The reproduction of the published numbers: how many were attempted, and the outcome of each.

Our number is better as soon as one trial is: other learning rates could only improve it. A number that has finished
trials but does not count as attempted has only begun, because its budget is not spent or a learning rate diverged; it
is counted separately. `analysis/agreement.py` defines what counts as attempted and how a number counts once.
"""

import enum
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from orch.analysis.aggregate import METRICS
from orch.analysis.agreement import TOLERANCE, Side, is_attempted, is_final, nearest, of_one_reading, side_of
from orch.analysis.comparison import Comparison
from orch.analysis.published import OOD, PublishedCell
from orch.core.errors import UnknownName
from orch.sweeps.selection import LEARNED

TOTAL = "total"


class ReproductionState(enum.StrEnum):
    """The outcome of a published number."""

    WITHIN = Side.WITHIN
    BETTER = Side.BETTER
    WORSE = Side.WORSE
    BEGUN = "begun"
    NOT_BEGUN = "not begun"


@dataclass(frozen=True, slots=True)
class Reproduced:
    """A published number and the one comparison that counts for it."""

    comparison: Comparison
    outcome: ReproductionState

    @property
    def table(self) -> str:
        """Table that it counts in: the first with the number, even if the value of a later table is nearer."""
        return self.comparison.distinct.table

    @property
    def published_as_learned(self) -> bool:
        """True if the published model has learned the task."""
        return self.comparison.published.accuracy >= LEARNED


@dataclass(frozen=True, slots=True)
class TableTally:
    """The number of published numbers of a table, by outcome."""

    table: str
    num_published: int
    num_within: int
    num_within_learned: int
    """Numbers within the tolerance that are published at 0.95 or more."""
    num_better: int
    num_worse: int
    num_begun: int

    @property
    def num_attempted(self) -> int:
        """Numbers that were trained in full, or far enough to be judged."""
        return self.num_within + self.num_better + self.num_worse


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The outcome of every published number of a split, each counted once."""

    split: str
    tolerance: float
    cells: tuple[Reproduced, ...]
    """Outcomes in the order of the published tables."""

    @property
    def tallies(self) -> list[TableTally]:
        """Counts of each table; a table whose numbers all occur in earlier tables is left out."""
        tables = dict.fromkeys(each.table for each in self.cells)
        return [_tally(name, [each for each in self.cells if each.table == name]) for name in tables]

    @property
    def total(self) -> TableTally:
        """Counts of all tables together."""
        return _tally(TOTAL, self.cells)

    def having(self, outcomes: Collection[ReproductionState]) -> list[Reproduced]:
        """Return the numbers with one of these outcomes."""
        return [each for each in self.cells if each.outcome in outcomes]

    def __str__(self) -> str:
        total = self.total
        numbers = f"{'test' if self.split == OOD else self.split} numbers"
        begun = f"; {total.num_begun:,} more are begun, short of their budget or diverged" if total.num_begun else ""
        return (
            f"{total.num_attempted:,} of {total.num_published:,} published {numbers} attempted:"
            f" {total.num_within:,} within {self.tolerance:g}, {total.num_within_learned:,} of them published at"
            f" {LEARNED:g} or more; {total.num_better:,} better, {total.num_worse:,} worse{begun}"
        )


def reproduction(comparisons: Collection[Comparison], split: str = OOD, tolerance: float = TOLERANCE) -> Reproduction:
    """Determine the outcome of each published number of a split."""
    if split not in METRICS:
        raise UnknownName("split", split, METRICS)
    asked = [each for each in of_one_reading(comparisons, tolerance) if each.published.split == split]
    counts: dict[PublishedCell, Comparison] = {}
    for preferred in (asked, [each for each in asked if is_attempted(each)]):
        counts |= {each.distinct: each for each in nearest(preferred)}
    cells = tuple(Reproduced(each, _outcome(each, tolerance)) for each in counts.values())
    return Reproduction(split, tolerance, cells)


def _outcome(comparison: Comparison, tolerance: float) -> ReproductionState:
    side = side_of(comparison, tolerance)
    if side is None:
        return ReproductionState.NOT_BEGUN
    return ReproductionState(side) if is_final(comparison, tolerance) else ReproductionState.BEGUN


def _tally(table: str, cells: Collection[Reproduced]) -> TableTally:
    counts = Counter(each.outcome for each in cells)
    return TableTally(
        table=table,
        num_published=len(cells),
        num_within=counts[ReproductionState.WITHIN],
        num_within_learned=sum(
            each.outcome is ReproductionState.WITHIN and each.published_as_learned for each in cells
        ),
        num_better=counts[ReproductionState.BETTER],
        num_worse=counts[ReproductionState.WORSE],
        num_begun=counts[ReproductionState.BEGUN],
    )
