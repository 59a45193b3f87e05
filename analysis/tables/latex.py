"""Tables as LaTeX, with booktabs: a float for each section, or more where a page cannot hold it."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from orch.analysis.latex_text import escape, label
from orch.analysis.tables.colour import background, ink
from orch.analysis.tables.entries import TableEntry
from orch.analysis.tables.layout import PaperTable, Section, TableRow

PREAMBLE = """\
% Needs, before \\begin{document}:
% \\usepackage{booktabs}
% \\usepackage[table]{xcolor}
% The widest tables take about 14 cm.
"""

MOST_LINES = 50
"""Lines of a float that fit on a page of an article, not counting its head and caption."""


def render_latex(table: PaperTable) -> str:
    """Write a table as one or more floats."""
    pages = [(section.heading, rows) for section in table.sections for rows in _pages(table, section)]
    return "\n".join(_float(table, heading, rows, place, len(pages)) for place, (heading, rows) in enumerate(pages))


def paragraph(text: str) -> str:
    """Return a text as a paragraph without indentation."""
    return rf"\noindent {escape(text)}"


def _pages(table: PaperTable, section: Section) -> list[list[TableRow]]:
    """Split a section's rows into pages, without separating the rows of one model."""
    pages: list[list[TableRow]] = [[]]
    for _, group in groupby(section.rows, key=lambda row: row.labels[0]):
        rows = list(group)
        if pages[-1] and sum(len(_stacks(table, row)[0]) for row in [*pages[-1], *rows]) > MOST_LINES:
            pages.append([])
        pages[-1] += rows
    return pages


def _float(table: PaperTable, heading: str, rows: Sequence[TableRow], place: int, num_floats: int) -> str:
    num_columns = sum(len(group.columns) for group in table.groups)
    title = f"{table.title}: {heading}" if heading else table.title
    explained = [table.caption, f"Each cell, from above: {', '.join(table.lines)}."] if place == 0 else []
    lines = [
        r"\begin{table}[htbp]",
        r"\centering\scriptsize",
        r"\setlength{\tabcolsep}{2pt}",
        rf"\caption{{{escape(' '.join([f'{title}.', *explained]))}}}",
        rf"\label{{tab:{label(f'{table.name} {heading}')}-{place + 1}}}",
        rf"\begin{{tabular}}{{l*{{{num_columns}}}{{c}}}}",
        r"\toprule",
        *_head(table),
        r"\midrule",
        *(line for row in rows for line in _lines(table, row, space=row is not rows[0])),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if place == num_floats - 1:
        notes = list(table.remarks)
        if table.legend:
            notes.append(f"Marks: {table.legend_text}.")
        lines += ["", r"\smallskip", rf"\parbox{{\linewidth}}{{{escape(' '.join(notes))}}}"]
    return "\n".join([*lines, r"\end{table}", ""])


def _head(table: PaperTable) -> Iterator[str]:
    cells, rules, start = [""], [], 2
    for group in table.groups:
        end = start + len(group.columns) - 1
        cells.append(rf"\multicolumn{{{len(group.columns)}}}{{c}}{{{escape(group.heading)}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{end}}}")
        start = end + 1
    yield " & ".join(cells) + r" \\"
    yield "".join(rules)
    texts = [table.columns, *(text for group in table.groups for text in group.columns)]
    yield " & ".join(map(escape, texts)) + r" \\"


def _lines(table: PaperTable, row: TableRow, space: bool) -> Iterator[str]:
    """Write a row, with its labels above each other like the texts of its cells."""
    if space:
        yield r"\addlinespace[2pt]"
    for line in zip(*_stacks(table, row), strict=True):
        yield " & ".join(line) + r" \\"


def _stacks(table: PaperTable, row: TableRow) -> list[list[str]]:
    """Return the labels and every cell, each as the same number of lines."""
    entries = [entry for group in row.entries for entry in group]
    stacks = [[escape(label) for label in row.labels], *(_stack(table, entry) for entry in entries)]
    height = max(len(stack) for stack in stacks)
    return [stack + [""] * (height - len(stack)) for stack in stacks]


def _stack(table: PaperTable, entry: TableEntry) -> list[str]:
    texts = []
    for piece in table.pieces(entry):
        shown = escape(piece.text) + (rf"\rlap{{{escape(piece.marks)}}}" if piece.marks else "")
        texts.append(rf"\textbf{{{shown}}}" if piece.bold else shown)
    if entry.value is not None:
        colour = background(entry.value)
        shades = [shade[1:].upper() for shade in (colour, ink(colour))]
        texts[0] = rf"\cellcolor[HTML]{{{shades[0]}}}\textcolor[HTML]{{{shades[1]}}}{{{texts[0]}}}"
    return [*texts, *([rf"{{\tiny {escape(entry.also)}}}"] if entry.also else [])]
