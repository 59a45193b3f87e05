"""The report's section on how far the published numbers are met."""

from collections.abc import Sequence

from orch.analysis.comparison import Comparison
from orch.analysis.published import OOD, VALIDATION
from orch.analysis.report.html import Markup, element, join, table
from orch.analysis.reproduction import TableTally, reproduction

_HEADERS = ["table", "published", "attempted", "within", "published at 0.95 or more", "better", "worse", "begun"]


def reproduction_section(comparisons: Sequence[Comparison]) -> Markup:
    parts = [
        element(
            "p",
            "A number is attempted once every learning rate had a trial that stopped early or took all its steps; one"
            " published at 0.95 or more, also as soon as a trial of ours reached 0.95; and where ours are better, more"
            " could only add to it. Each counts once, in the first table that has it, by the value that comes nearest;"
            " where the paper leaves open how a table was trained, the reading that meets most of it counts for all of"
            " it.",
        )
    ]
    for split in (OOD, VALIDATION):
        found = reproduction(comparisons, split)
        if found.cells:
            parts.append(element("p", f"{found}."))
            parts.append(table(_HEADERS, map(_row, (*found.tallies, found.total)), numbers=_HEADERS[1:]))
    return join(parts)


def _row(tally: TableTally) -> list[str]:
    counts = (
        tally.num_published,
        tally.num_attempted,
        tally.num_within,
        tally.num_within_learned,
        tally.num_better,
        tally.num_worse,
        tally.num_begun,
    )
    return [tally.table, *(f"{count:,}" for count in counts)]
