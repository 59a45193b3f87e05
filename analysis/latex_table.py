"""A plain table as LaTeX with booktabs: results, answers to queries, and the tables of one's own sweeps."""

from collections.abc import Sequence

from orch.analysis.latex_text import escape, label

MOST_LINES = 45
"""Rows of a float that fit on a page of an article; a longer table breaks across pages."""

_NO_WIDER_THAN_THE_TEXT = ("}%", r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi")


def latex_table(
    headings: Sequence[str],
    numbers: Sequence[bool],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    name: str = "",
) -> str:
    """Write a table of texts; columns of `numbers` are aligned to the right.

    With a caption it is a float with the label `tab:NAME`, scaled down if it is wider than the text, or a longtable if
    a page cannot hold it. Without, it is a bare tabular to place anywhere.
    """
    columns = "".join("r" if number else "l" for number in numbers)
    head = [r"\toprule", _line(headings), r"\midrule"]
    body = [_line(row) for row in rows]
    said = rf"\caption{{{escape(caption)}}}\label{{tab:{label(name)}}}"
    if len(rows) > MOST_LINES:
        lines = [
            rf"\begin{{longtable}}{{{columns}}}",
            *([rf"{said}\\"] if caption else []),
            *head,
            r"\endhead",
            r"\bottomrule",
            r"\endfoot",
            *body,
            r"\end{longtable}",
        ]
        return _with_needs(["booktabs", "longtable"], lines)
    tabular = [rf"\begin{{tabular}}{{{columns}}}", *head, *body, r"\bottomrule", r"\end{tabular}"]
    if not caption:
        return _with_needs(["booktabs"], tabular)
    begin = [r"\begin{table}[htbp]", r"\centering\small", said, r"\sbox0{%"]
    return _with_needs(["booktabs", "graphicx"], [*begin, *tabular, *_NO_WIDER_THAN_THE_TEXT, r"\end{table}"])


def _line(cells: Sequence[str]) -> str:
    return " & ".join(map(escape, cells)) + r" \\"


def _with_needs(packages: Sequence[str], lines: Sequence[str]) -> str:
    needs = " ".join(rf"\usepackage{{{package}}}" for package in packages)
    return "\n".join([f"% Needs, before \\begin{{document}}: {needs}", *lines, ""])
