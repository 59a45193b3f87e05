"""The table of a sweep without published numbers, such as one's own: a row for each cell, in any format."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orch.analysis.aggregate import Score, where_chosen
from orch.analysis.latex_table import latex_table
from orch.analysis.published import OOD, VALIDATION
from orch.analysis.report.collect import CellResult, SweepResult
from orch.analysis.statistics import BEST_OF
from orch.analysis.tables import markdown
from orch.analysis.tables.entries import decimals, rate_text
from orch.analysis.tables.terminal import print_grid
from orch.core.errors import UnknownName
from orch.core.printable import sentence
from orch.sweeps.scales import Scale

_BEST_OF = f"best of {BEST_OF}"
HEADINGS = (
    *("model", "task", "settings", "seeds that learn", "perfect, then fail", "mean ± sd", "best", _BEST_OF),
    *("validation", "rate", "chosen at", "remark"),
)
NUMBERS = frozenset({"seeds that learn", "perfect, then fail", "mean ± sd", "best", _BEST_OF, "validation", "rate"})
"""Headings of the columns that are aligned to the right."""


@dataclass(frozen=True, slots=True)
class SweepTable:
    """The results of a sweep as texts; a missing value is empty or a dash."""

    name: str
    title: str
    caption: str
    headings: tuple[str, ...]
    rows: list[list[str]]

    @property
    def numbers(self) -> list[bool]:
        """True for each column of numbers."""
        return [heading in NUMBERS for heading in self.headings]


def sweep_table(sweep: SweepResult, scale: Scale) -> SweepTable:
    """Lay out the cells of a sweep, without columns that are empty, and without a place of choice that all rows share.

    The caption says that place.
    """
    rows = [cell_row(each) for each in sweep.cells]
    where = HEADINGS.index("chosen at")
    said = {where} if len({row[where] for row in rows} - {""}) == 1 else set()
    kept = [place for place in range(len(HEADINGS)) if place not in said and any(row[place] for row in rows)]
    headings = tuple(HEADINGS[place] for place in kept)
    return SweepTable(
        name=sweep.name,
        title=sweep.title,
        caption=caption(sweep, scale, headings),
        headings=headings,
        rows=[[row[place] for place in kept] for row in rows],
    )


def caption(sweep: SweepResult, scale: Scale, headings: Collection[str]) -> str:
    """Return what the numbers of a sweep's table with these columns are, in sentences."""
    lengths = sorted({each.joined.cell.example.test_length for each in sweep.cells})
    at = " or ".join(map(str, lengths))
    failing = (
        " Perfect, then fail: seeds with 0.99 or more at trained lengths and less than 0.95 at the test length."
        if "perfect, then fail" in headings
        else ""
    )
    chosen = where_chosen(each.joined.summary.chosen_at for each in sweep.cells) or "short of the test"
    return (
        f"Accuracy at {at} inputs, where 0 is chance and 1 perfect, at {scale.name} scale ({scale.about}). Seeds that"
        f" learn: 0.95 or more at the learning rate chosen {chosen}, with the 95% Wilson interval of their share."
        f"{failing} Mean and standard deviation (sd): over the seeds of that rate. Best: over learning rates and seeds."
        f" Best of {BEST_OF}: expected of that many trials. Validation: the mean at trained lengths."
    )


def cell_row(each: CellResult) -> list[str]:
    """Return a row about a cell, with a text for each of `HEADINGS`."""
    cell, summary = each.joined.cell, each.joined.summary
    trial = cell.example
    names = [trial.model.title_of(cell.shown_variant), trial.task.full_title, each.settings]
    if summary.scores is None:
        return [*names, *[""] * (len(HEADINGS) - len(names) - 1), summary.remark]
    far, near = summary.scores[OOD], summary.scores[VALIDATION]
    learned = "–" if far.learned is None else str(far.learned)
    failing = f"{summary.failing.num} of {summary.failing.of}" if summary.failing and summary.failing.num else ""
    best_of = "" if far.expected_best is None else decimals(far.expected_best)
    numbers = [learned, failing, _mean(far), _number(far.best), best_of, _number(near.mean)]
    return [*names, *numbers, rate_text(summary.learning_rate), summary.chosen_at or "", summary.remark]


def _mean(score: Score) -> str:
    spread = "" if score.spread is None else f" ± {decimals(score.spread)}"
    return f"{_number(score.mean)}{spread}"


def _number(value: float | None) -> str:
    return "–" if value is None else decimals(value)


def render_sweep(table: SweepTable, format: str) -> str:
    """Write the table of a sweep as `terminal`, `markdown` or `latex`."""
    if format == "latex":
        said = f"{sentence(table.title)} {table.caption}"
        return latex_table(table.headings, table.numbers, table.rows, said, table.name)
    if format == "markdown":
        return _markdown(table)
    if format == "terminal":
        return print_grid(table.title, table.caption, table.headings, table.numbers, table.rows)
    raise UnknownName("format", format, ("terminal", "markdown", "latex"))


def _markdown(table: SweepTable) -> str:
    align = ["---:" if number else "---" for number in table.numbers]
    body = [[markdown.escape(text) for text in row] for row in table.rows]
    grid = "\n".join(_line(cells) for cells in (table.headings, align, *body))
    return f"### {markdown.escape(table.title)}\n\n{markdown.escape(table.caption)}\n\n{grid}\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
