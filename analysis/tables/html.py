"""Tables as HTML: a fragment with classes, to be used with `stylesheet`. It asks nothing of the network."""

from collections.abc import Iterator, Sequence
from html import escape

from orch.analysis.tables.colour import DARK, LIGHT, NUM_STEPS, Ramp, background, ink, step_of
from orch.analysis.tables.entries import DIFFERENCE, PUBLISHED, TableEntry
from orch.analysis.tables.layout import PaperTable, TableRow

_STYLE = """\
.paper-table { margin: 1.5rem 0; }
.paper-table .scroll { overflow-x: auto; }
.paper-table table { border-collapse: separate; border-spacing: 1px; border-block: 2px solid currentColor;
  font-size: .875rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.paper-table caption { text-align: left; padding: .5rem 0; max-width: 60rem; }
.paper-table th { text-align: left; vertical-align: top; padding: .2rem .75rem .2rem 0; }
.paper-table thead th { vertical-align: bottom; border-bottom: 1px solid currentColor; }
.paper-table thead th.over { text-align: center; padding: .2rem .25rem; }
.paper-table tbody th { font-weight: 400; white-space: nowrap; }
.paper-table tbody th.section { font-weight: 600; padding-top: .5rem; }
.paper-table tbody + tbody th.section { border-top: 1px solid currentColor; }
.paper-table td { text-align: center; vertical-align: top; white-space: nowrap; padding: .2rem .25rem;
  min-width: 4.1rem; background-clip: padding-box; }
.paper-table .apart { border-left: .5rem solid transparent; }
.paper-table td > b { display: block; font-weight: 600; }
.paper-table td small { display: block; font-size: .72rem; }
.paper-table td small b { font-weight: 800; }
.paper-table .notes { font-size: .875rem; max-width: 60rem; margin: .4rem 0; }
.paper-table .scale { display: inline-flex; vertical-align: middle; margin: 0 .4rem; }
.paper-table .scale i { width: .7rem; height: 1rem; }
@media print { .paper-table td, .paper-table i { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .paper-table tr { break-inside: avoid; } }
"""


def stylesheet() -> str:
    """For all tables of a page, once."""
    light, dark = ("\n".join(_ramp(ramp)) for ramp in (LIGHT, DARK))
    return f"{_STYLE}{light}\n@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _ramp(ramp: Ramp) -> Iterator[str]:
    for step in range(NUM_STEPS + 1):
        colour = background(step / NUM_STEPS, ramp)
        yield f".paper-table .a{step} {{ background-color: {colour}; color: {ink(colour)}; }}"


def render_html(table: PaperTable, details: PaperTable | None = None) -> str:
    """`details` is the same table by another reading, folded away beneath."""
    parts = [f'<div class="paper-table" id="table-{escape(table.name)}">', *_table(table)]
    if details is not None:
        parts += ["<details><summary>By our own reading</summary>", *_table(details, remarks=False), "</details>"]
    return "\n".join([*parts, "</div>\n"])


def _table(table: PaperTable, remarks: bool = True) -> Iterator[str]:
    yield '<div class="scroll"><table>'
    yield f"<caption><b>{escape(table.title)}.</b> {escape(table.caption)}</caption>"
    yield "<thead>"
    yield from _head(table)
    yield "</thead>"
    width = len(table.headings) + sum(len(group.columns) for group in table.groups)
    for section in table.sections:
        yield "<tbody>"
        if section.heading:
            yield f'<tr><th class="section" scope="rowgroup" colspan="{width}">{escape(section.heading)}</th></tr>'
        for place, row in enumerate(section.rows):
            yield _row(table, row, section.rows[place - 1].labels if place else (), section.rows[place:])
        yield "</tbody>"
    yield "</table></div>"
    yield paragraph(f"Each cell: {', '.join(table.lines)}.", _scale())
    if remarks:
        yield paragraph(" ".join(table.remarks))
    if table.legend:
        yield paragraph("; ".join(f"{mark} {meaning}" for mark, meaning in table.legend.items()) + ".")


def paragraph(text: str, before: str = "") -> str:
    return f'<p class="notes">{before}{escape(text)}</p>'


def _head(table: PaperTable) -> Iterator[str]:
    groups = "".join(
        f'<th class="over apart" scope="colgroup" colspan="{len(group.columns)}">{escape(group.heading)}</th>'
        for group in table.groups
    )
    empty = f'<td colspan="{len(table.headings)}"></td>'
    yield f"<tr>{empty}{groups}</tr>"
    headings = [*table.headings[:-1], f"{table.headings[-1]} \\ {table.columns.lower()}"]
    labels = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    columns = "".join(
        f'<th class="over{" apart" if place == 0 else ""}" scope="col">{escape(column)}</th>'
        for group in table.groups
        for place, column in enumerate(group.columns)
    )
    yield f"<tr>{labels}{columns}</tr>"


def _row(table: PaperTable, row: TableRow, before: Sequence[str], below: Sequence[TableRow]) -> str:
    """Labels that the row above has too are left out: the cell there reaches down to here."""
    labels = []
    for place, label in enumerate(row.labels):
        if tuple(before[: place + 1]) == row.labels[: place + 1] and place + 1 < len(row.labels):
            continue
        same = 1
        if place + 1 < len(row.labels):
            while same < len(below) and below[same].labels[: place + 1] == row.labels[: place + 1]:
                same += 1
        reach = f' rowspan="{same}"' if same > 1 else ""
        labels.append(f'<th scope="row"{reach}>{escape(label)}</th>')
    cells = (_cell(table, entry, apart=place == 0) for group in row.entries for place, entry in enumerate(group))
    return f"<tr>{''.join(labels)}{''.join(cells)}</tr>"


def _cell(table: PaperTable, entry: TableEntry, apart: bool) -> str:
    names = [*(["apart"] if apart else []), *([f"a{step_of(entry.value)}"] if entry.value is not None else [])]
    lines: list[list[str]] = [[]]
    for name, text in zip(table.lines[1:], entry.lines[1:], strict=True):
        if name == PUBLISHED or len(lines[-1]) == 2:
            lines.append([])
        written = escape(text + (entry.marks_published if name == PUBLISHED else ""))
        lines[-1].append(f"<b>{written}</b>" if name == DIFFERENCE and entry.beyond else written)
    texts = [" ".join(filter(None, line)) for line in lines]
    small = "".join(f"<small>{text}</small>" for text in [*texts, escape(entry.also)] if text)
    attributes = "".join(
        f' {name}="{escape(value)}"' for name, value in (("class", " ".join(names)), ("title", entry.told)) if value
    )
    return f"<td{attributes}><b>{escape(entry.lines[0] + entry.marks)}</b>{small}</td>"


def _scale() -> str:
    steps = "".join(f'<i class="a{step}"></i>' for step in range(NUM_STEPS + 1))
    return f'0 <span class="scale" aria-hidden="true">{steps}</span> 1. '
