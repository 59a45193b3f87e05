"""Tables for the terminal: coloured there, plain text when piped or when NO_COLOR is set."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orch.analysis.tables.colour import background, ink
from orch.analysis.tables.entries import DIFFERENCE, PUBLISHED, TableEntry
from orch.analysis.tables.layout import PaperTable, Section

if TYPE_CHECKING:
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

PIPED_WIDTH = 400
"""Enough for every table: what is piped is not wrapped."""


def render_terminal(table: PaperTable, width: int | None = None) -> str:
    """For the terminal at hand; `width` is for another."""
    console = _console(width)
    with console.capture() as capture:
        console.print(table.title, style="bold", markup=False)
        _say(console, table.caption)
        for section in table.sections:
            for position in range(len(table.groups)):
                for grid in _grids(console, table, section, position):
                    console.print(grid)
        _say(console, f"Each cell: {', '.join(table.lines)}.")
        for remark in table.remarks:
            _say(console, remark)
        for mark, meaning in table.legend.items():
            _say(console, f"{mark} {meaning}")
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _console(width: int | None) -> "Console":
    from rich.console import Console

    console = Console(width=width, highlight=False)
    if console.is_terminal and not console.no_color:
        return console
    return Console(width=width or (console.width if console.is_terminal else PIPED_WIDTH), color_system=None)


def _wanted(console: "Console", grid: "Table") -> "Measurement":
    """The least and the most width it can do with, whatever there is room for."""
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(max_width=PIPED_WIDTH), grid)


def _say(console: "Console", text: str) -> None:
    console.print(text, markup=False, soft_wrap=not console.is_terminal)


def _grids(console: "Console", table: PaperTable, section: Section, position: int) -> "list[Table]":
    """A group of columns as one table, or as several where the terminal is too narrow."""
    num_columns = len(table.groups[position].columns)
    whole = _grid(table, section, position, range(num_columns), stacked=False)
    if _wanted(console, whole).maximum <= console.width:
        return [whole]
    for at_once in range(num_columns, 0, -1):
        parts = [range(start, min(start + at_once, num_columns)) for start in range(0, num_columns, at_once)]
        grids = [_grid(table, section, position, part, stacked=True) for part in parts]
        if all(_wanted(console, grid).minimum <= console.width for grid in grids):
            break
    return grids


def _grid(table: PaperTable, section: Section, position: int, part: range, stacked: bool) -> "Table":
    """With a cell's texts above each other, or side by side where there is room."""
    from rich import box
    from rich.table import Table

    group = table.groups[position]
    title = " · ".join(filter(None, (section.heading, group.heading)))
    grid = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in table.headings[:-1]:
        grid.add_column(heading, no_wrap=not stacked, overflow="fold")
    grid.add_column(f"{table.headings[-1]} \\ {table.columns.lower()}", no_wrap=not stacked, overflow="fold")
    if stacked:
        grid.add_column("", min_width=max(map(len, table.lines)), no_wrap=True)
    entries = [row.entries[position][part.start : part.stop] for row in section.rows]
    widths = [_widths(table, column, stacked) for column in zip(*entries, strict=True)]
    for column, pieces in zip(group.columns[part.start : part.stop], widths, strict=True):
        shown = [wide + after for wide, after in pieces if wide + after]
        width = max(shown) if stacked else sum(shown) + len(shown) - 1
        grid.add_column(column.center(width), min_width=width, no_wrap=True)
    before: tuple[str, ...] = ()
    for row, cells in zip(section.rows, entries, strict=True):
        labels = _unless_repeated(row.labels, before)
        before = row.labels
        names = ["\n".join(table.lines)] if stacked else []
        texts = (_cell(table, entry, width, stacked) for entry, width in zip(cells, widths, strict=True))
        grid.add_row(*labels, *names, *texts, end_section=stacked)
    return grid


Piece = tuple[str, str]
"""A number and the marks after it."""


def _pieces(table: PaperTable, entry: TableEntry) -> list[Piece]:
    marks = {table.lines[0]: entry.marks, PUBLISHED: entry.marks_published}
    pieces = [(text, marks.get(name, "")) for name, text in zip(table.lines, entry.lines, strict=True)]
    return [*pieces, (entry.also, "")]


def _widths(table: PaperTable, entries: Sequence[TableEntry], stacked: bool) -> list[tuple[int, int]]:
    """Of the numbers and the marks of each piece, so that numbers stand under each other."""
    columns = list(zip(*(_pieces(table, entry) for entry in entries), strict=True))
    widths = [(max(len(text) for text, _ in pieces), max(len(marks) for _, marks in pieces)) for pieces in columns]
    if not stacked:
        return widths
    return [(max(text for text, _ in widths), max(marks for _, marks in widths))] * len(widths)


def _cell(table: PaperTable, entry: TableEntry, widths: Sequence[tuple[int, int]], stacked: bool) -> "Text":
    from rich.text import Text

    cell = Text()
    for place, ((text, marks), (wide, after)) in enumerate(zip(_pieces(table, entry), widths, strict=True)):
        last = place == len(table.lines)
        if (last and stacked and not entry.also) or wide + after == 0:
            continue
        style = ""
        if place == 0 and entry.value is not None:
            colour = background(entry.value)
            style = f"{ink(colour)} on {colour}"
        elif not last and table.lines[place] == DIFFERENCE and entry.beyond:
            style = "bold"
        if place:
            cell.append("\n" if stacked else " ")
        cell.append(text.rjust(wide) + marks.ljust(after), style)
    return cell


def _unless_repeated(labels: Sequence[str], before: Sequence[str]) -> list[str]:
    """Without those that the row above has too."""
    shown = list(labels)
    for place, pair in enumerate(zip(labels, before, strict=False)):
        if pair[0] != pair[1]:
            break
        shown[place] = ""
    return shown
