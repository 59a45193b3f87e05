"""One published table, or all of them, written in a format."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from orch.analysis.agreement import TOLERANCE, agreement
from orch.analysis.comparison import Comparison
from orch.analysis.published import TABLES, published_cells
from orch.analysis.tables import html, latex, markdown
from orch.analysis.tables.layout import PaperTable, lay_out
from orch.analysis.tables.terminal import render_terminal
from orch.core.errors import UnknownName
from orch.sweeps.scales import Scale


@dataclass(frozen=True, slots=True)
class TableFormat:
    """The functions that write tables and texts in one format."""

    table: Callable[[PaperTable], str]
    paragraph: Callable[[str], str]
    preamble: Callable[[], str] = str
    """Returns what stands once before all tables."""


FORMATS = {
    "terminal": TableFormat(render_terminal, str),
    "markdown": TableFormat(markdown.render_markdown, markdown.escape),
    "latex": TableFormat(latex.render_latex, latex.paragraph, lambda: latex.PREAMBLE),
    "html": TableFormat(html.render_html, html.paragraph, lambda: f"<style>\n{html.stylesheet()}</style>"),
}


def render(
    name: str,
    comparisons: Sequence[Comparison],
    scale: Scale,
    format: str = "terminal",
    reading: str = "paper",
    tolerance: float = TOLERANCE,
) -> str:
    """Write the published table of that name and our numbers; empty if the scale plans none of it.

    As HTML it is a fragment for a page that has `stylesheet`, and our own reading is folded away below the paper's.
    As LaTeX it is for a document with the packages of `latex.PREAMBLE`.
    """
    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    table = lay_out(name, comparisons, scale, reading, tolerance)
    if table is None:
        return ""
    if format == "html" and reading == "paper":
        return html.render_html(table, details=lay_out(name, comparisons, scale, "ours", tolerance))
    return FORMATS[format].table(table)


def render_all(
    comparisons: Sequence[Comparison],
    scale: Scale,
    format: str = "terminal",
    reading: str = "paper",
    tolerance: float = TOLERANCE,
    tables: Iterable[str] = tuple(TABLES),
) -> str:
    """Write every table that the scale plans trials for, then the agreement over all of them."""
    names = list(tables)
    chosen = [each for each in comparisons if each.published.table in names]
    texts = [render(name, chosen, scale, format, reading, tolerance) for name in names]
    overall = FORMATS[format].paragraph(overall_text(chosen, scale, tolerance))
    return "\n".join(text for text in (FORMATS[format].preamble(), *texts, overall) if text) + "\n"


def overall_text(comparisons: Sequence[Comparison], scale: Scale, tolerance: float = TOLERANCE) -> str:
    """Describe the agreement over the numbers of all tables, counting each number once."""
    num_published = len(published_cells())
    num_planned = len({each.published for each in comparisons})
    return (
        f"In all, each number once: {agreement(comparisons, tolerance)}."
        f" Of the {num_published:,} numbers of the paper's tables, {num_planned:,} are compared at {scale.name} scale."
    )
