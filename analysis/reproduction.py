"""How far the published numbers are met: what was attempted in full, and what came of it.

A number is attempted once every learning rate had a trial that stopped early or took all its steps; or, where the
published model has learned, as soon as one trial of ours has: the others could add no more than what is missing to 1.
Ours are better as soon as one trial is: the others could only add to it. One with other finished trials is only begun,
short of its budget or with a rate that diverged, and counted apart.

As everywhere a number counts once, and of the values the paper gives it the nearest counts. Where the paper leaves open
how it trained a whole table, one reading counts for all of that table: the one that meets most of its numbers.
"""

import enum
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from analysis.aggregate import METRICS, scored
from analysis.agreement import TOLERANCE, Side, nearest, side_of
from analysis.comparison import Comparison
from analysis.published import OOD, PublishedCell
from orchestrator.errors import UnknownName
from orchestrator.result import StopReason
from orchestrator.selection import LEARNED

TOTAL = "total"


class Outcome(enum.StrEnum):
    WITHIN = Side.WITHIN
    BETTER = Side.BETTER
    WORSE = Side.WORSE
    BEGUN = "begun"
    NOT_BEGUN = "not begun"


@dataclass(frozen=True, slots=True)
class Reproduced:
    """A published number and the one comparison that counts for it."""

    comparison: Comparison
    outcome: Outcome

    @property
    def table(self) -> str:
        """Where it counts: the first table that has the number, even if the value of a later one is nearer."""
        return self.comparison.distinct.table

    @property
    def published_as_learned(self) -> bool:
        return self.comparison.published.accuracy >= LEARNED


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of a table."""

    table: str
    num_published: int
    num_within: int
    num_within_learned: int
    """Of those within, how many are published at 0.95 or more."""
    num_better: int
    num_worse: int
    num_begun: int

    @property
    def num_attempted(self) -> int:
        return self.num_within + self.num_better + self.num_worse


@dataclass(frozen=True, slots=True)
class Reproduction:
    split: str
    tolerance: float
    cells: tuple[Reproduced, ...]
    """In the order of the published tables."""

    @property
    def tallies(self) -> list[Tally]:
        """Table by table; one whose numbers all stand in earlier tables has none."""
        tables = dict.fromkeys(each.table for each in self.cells)
        return [_tally(name, [each for each in self.cells if each.table == name]) for name in tables]

    @property
    def total(self) -> Tally:
        return _tally(TOTAL, self.cells)

    def having(self, outcomes: Collection[Outcome]) -> list[Reproduced]:
        return [each for each in self.cells if each.outcome in outcomes]

    def __str__(self) -> str:
        total = self.total
        begun = f"; {total.num_begun:,} more are begun, short of their budget or diverged" if total.num_begun else ""
        return (
            f"{total.num_attempted:,} of {total.num_published:,} published {self.split} numbers attempted:"
            f" {total.num_within:,} within {self.tolerance:g}, {total.num_within_learned:,} of them published at"
            f" {LEARNED:g} or more; {total.num_better:,} better, {total.num_worse:,} worse{begun}"
        )


def reproduction(comparisons: Iterable[Comparison], split: str = OOD, tolerance: float = TOLERANCE) -> Reproduction:
    """What became of each number of a split."""
    if split not in METRICS:
        raise UnknownName("split", split, METRICS)
    asked = _of_one_reading([each for each in comparisons if each.published.split == split], tolerance)
    counts: dict[PublishedCell, Comparison] = {}
    for preferred in (asked, [each for each in asked if is_attempted(each)]):
        counts |= {each.distinct: each for each in nearest(preferred)}
    cells = tuple(Reproduced(each, _outcome(each, tolerance)) for each in counts.values())
    return Reproduction(split, tolerance, cells)


def _of_one_reading(comparisons: Collection[Comparison], tolerance: float) -> list[Comparison]:
    """Without the readings of a table that meet fewer of its numbers than another, or else have fewer attempted."""
    merits: dict[str, dict[str, Counter[str]]] = {}
    for each in comparisons:
        if each.reading and each.repeats is None:
            merit = merits.setdefault(each.distinct.table, {}).setdefault(each.reading, Counter())
            merit[_outcome(each, tolerance)] += 1
    best = {table: max(readings, key=lambda name: _merit(readings[name])) for table, readings in merits.items()}
    return [each for each in comparisons if not each.reading or each.reading == best[each.distinct.table]]


def _merit(outcomes: Counter[str]) -> tuple[int, int, int]:
    attempted = outcomes[Outcome.WITHIN] + outcomes[Outcome.BETTER] + outcomes[Outcome.WORSE]
    return outcomes[Outcome.WITHIN], attempted, outcomes[Outcome.BEGUN]


def is_attempted(comparison: Comparison) -> bool:
    """Whether a reading of a number had what it needs to be judged."""
    published, rows = comparison.published, comparison.finished
    if published.accuracy >= LEARNED and any(scored(row[METRICS[published.split]]) >= LEARNED for row in rows):
        return True
    ended = {row["learning_rate"] for row in rows if row["stop_reason"] in (StopReason.EARLY_STOP, StopReason.BUDGET)}
    return comparison.learning_rates <= ended


def _outcome(comparison: Comparison, tolerance: float) -> Outcome:
    side = side_of(comparison, tolerance)
    if side is None:
        return Outcome.NOT_BEGUN
    return Outcome(side) if side is Side.BETTER or is_attempted(comparison) else Outcome.BEGUN


def _tally(table: str, cells: Collection[Reproduced]) -> Tally:
    counts = Counter(each.outcome for each in cells)
    return Tally(
        table=table,
        num_published=len(cells),
        num_within=counts[Outcome.WITHIN],
        num_within_learned=sum(each.outcome is Outcome.WITHIN and each.published_as_learned for each in cells),
        num_better=counts[Outcome.BETTER],
        num_worse=counts[Outcome.WORSE],
        num_begun=counts[Outcome.BEGUN],
    )
