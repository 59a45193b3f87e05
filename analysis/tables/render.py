"""One published table, or all of them, written in a format."""

from collections.abc import Callable, Iterable, Sequence

from orch.analysis.agreement import TOLERANCE, agreement
from orch.analysis.comparison import Comparison
from orch.analysis.published import TABLES, published_cells
from orch.analysis.tables import html, latex, markdown
from orch.analysis.tables.layout import PaperTable, lay_out
from orch.analysis.tables.terminal import render_terminal
from orch.core.errors import UnknownName
from orch.sweeps.scales import Scale

FORMATS = ("terminal", "markdown", "latex", "html")


def render(
    name: str,
    comparisons: Sequence[Comparison],
    scale: Scale,
    format: str = "terminal",
    reading: str = "paper",
    tolerance: float = TOLERANCE,
) -> str:
    """The published table of that name with ours beside it; empty if the scale plans nothing of it.

    As HTML it is a fragment for a page that has `stylesheet`, and our own reading is folded away beneath the paper's.
    As LaTeX it is for a document with the packages of `latex.PREAMBLE`.
    """
    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    table = lay_out(name, comparisons, scale, reading, tolerance)
    if table is None:
        return ""
    if format == "html":
        details = lay_out(name, comparisons, scale, "ours", tolerance) if reading == "paper" else None
        return html.render_html(table, details)
    writers: dict[str, Callable[[PaperTable], str]] = {
        "terminal": render_terminal,
        "markdown": markdown.render_markdown,
        "latex": latex.render_latex,
    }
    return writers[format](table)


def render_all(
    comparisons: Sequence[Comparison],
    scale: Scale,
    format: str = "terminal",
    reading: str = "paper",
    tolerance: float = TOLERANCE,
    tables: Iterable[str] = tuple(TABLES),
) -> str:
    """Every table of which something is planned, and how far all of them agree; with the stylesheet or the packages."""
    names = list(tables)
    chosen = [each for each in comparisons if each.published.table in names]
    texts = [render(name, chosen, scale, format, reading, tolerance) for name in names]
    before = {"latex": latex.PREAMBLE, "html": f"<style>\n{html.stylesheet()}</style>"}.get(format, "")
    paragraphs: dict[str, Callable[[str], str]] = {
        "terminal": str,
        "markdown": markdown.escape,
        "latex": latex.paragraph,
        "html": html.paragraph,
    }
    overall = paragraphs[format](overall_text(chosen, scale, tolerance))
    return "\n".join([text for text in (before, *texts, overall) if text]) + "\n"


def overall_text(comparisons: Sequence[Comparison], scale: Scale, tolerance: float = TOLERANCE) -> str:
    """All tables together, each number once."""
    num_published = len(published_cells())
    num_planned = len({each.published for each in comparisons})
    return (
        f"In all, each number once: {agreement(comparisons, tolerance)}."
        f" Of the {num_published:,} numbers of the paper's tables, {num_planned:,} are compared at {scale.name} scale."
    )
