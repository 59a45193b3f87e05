"""Tables for the terminal: coloured there, plain text when piped or when NO_COLOR is set."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orch.analysis.tables.colour import background, ink
from orch.analysis.tables.entries import Piece, TableEntry
from orch.analysis.tables.layout import PaperTable, Section
from orch.core.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

PIPED_WIDTH = 400
"""Enough for every table: piped text is not wrapped."""


def render_terminal(table: PaperTable, width: int | None = None) -> str:
    """Write a table that fits the current terminal, or one that is `width` columns wide."""
    console = _console(width)
    with console.capture() as capture:
        console.print(printable(table.title), style="bold")
        _print_sentence(console, table.caption)
        for section in table.sections:
            for position in range(len(table.groups)):
                for grid in _grids(console, table, section, position):
                    console.print(grid)
        legend = [f"{mark} {meaning}" for mark, meaning in table.legend.items()]
        for sentence in (f"Each cell: {', '.join(table.lines)}.", *table.remarks, *legend):
            _print_sentence(console, sentence)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def print_grid(
    title: str, caption: str, headings: Sequence[str], numbers: Sequence[bool], rows: Sequence[Sequence[str]]
) -> str:
    """Write a plain table of texts with its title and caption; columns of `numbers` are aligned to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = _console(None)
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, number in zip(headings, numbers, strict=True):
        grid.add_column(
            Text(printable(heading)), justify="right" if number else "left", no_wrap=number, overflow="fold"
        )
    for row in rows:
        grid.add_row(*(Text(printable(text)) for text in row))
    with console.capture() as capture:
        console.print(Text(printable(title), "bold"))
        _print_sentence(console, caption)
        console.print(grid)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _console(width: int | None) -> "Console":
    from rich.console import Console

    console = Console(width=width, highlight=False, markup=False)
    if console.is_terminal and not console.no_color:
        return console
    width = width or (console.width if console.is_terminal else PIPED_WIDTH)
    return Console(width=width, color_system=None, highlight=False, markup=False)


def _print_sentence(console: "Console", text: str) -> None:
    console.print(printable(text), soft_wrap=not console.is_terminal)


def _wanted_width(console: "Console", grid: "Table") -> "Measurement":
    """Return the least and the most width that a table can use."""
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(max_width=PIPED_WIDTH), grid)


def _grids(console: "Console", table: PaperTable, section: Section, position: int) -> "list[Table]":
    """Return a group of columns as one table, or as several where the terminal is too narrow."""
    num_columns = len(table.groups[position].columns)
    whole = _grid(table, section, position, range(num_columns), stacked=False)
    if _wanted_width(console, whole).maximum <= console.width:
        return [whole]
    for at_once in range(num_columns, 0, -1):
        parts = [range(start, min(start + at_once, num_columns)) for start in range(0, num_columns, at_once)]
        grids = [_grid(table, section, position, part, stacked=True) for part in parts]
        if all(_wanted_width(console, grid).minimum <= console.width for grid in grids):
            break
    return grids


def _grid(table: PaperTable, section: Section, position: int, part: range, stacked: bool) -> "Table":
    """Return some columns as a table, with the texts of a cell stacked or side by side."""
    from rich import box
    from rich.table import Table

    group = table.groups[position]
    title = " · ".join(filter(None, (section.heading, group.heading)))
    grid = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in table.corner_headings:
        grid.add_column(heading, no_wrap=not stacked, overflow="fold")
    if stacked:
        grid.add_column("", min_width=max(map(len, table.lines)), no_wrap=True)
    entries = [row.entries[position][part.start : part.stop] for row in section.rows]
    widths = [_widths(table, column, stacked) for column in zip(*entries, strict=True)]
    for column, pieces in zip(group.columns[part.start : part.stop], widths, strict=True):
        shown = [wide + after for wide, after in pieces if wide + after]
        width = max(shown) if stacked else sum(shown) + len(shown) - 1
        grid.add_column(column.center(width), min_width=width, no_wrap=True)
    above: tuple[str, ...] = ()
    for row, cells in zip(section.rows, entries, strict=True):
        places = enumerate(row.labels, start=1)
        labels = ["" if above[:end] == row.labels[:end] else label for end, label in places]
        above = row.labels
        names = ["\n".join(table.lines)] if stacked else []
        texts = (_cell(table, entry, width, stacked) for entry, width in zip(cells, widths, strict=True))
        grid.add_row(*labels, *names, *texts, end_section=stacked)
    return grid


def _pieces(table: PaperTable, entry: TableEntry) -> list[Piece]:
    return [*table.pieces(entry), Piece("also", entry.also)]


def _widths(table: PaperTable, entries: Sequence[TableEntry], stacked: bool) -> list[tuple[int, int]]:
    """Return how wide each text and its marks are, so that the numbers of a column are aligned."""
    columns = zip(*(_pieces(table, entry) for entry in entries), strict=True)
    widths = [(max(len(each.text) for each in pieces), max(len(each.marks) for each in pieces)) for pieces in columns]
    if not stacked:
        return widths
    return [(max(text for text, _ in widths), max(marks for _, marks in widths))] * len(widths)


def _cell(table: PaperTable, entry: TableEntry, widths: Sequence[tuple[int, int]], stacked: bool) -> "Text":
    from rich.text import Text

    cell = Text()
    for place, (piece, (wide, after)) in enumerate(zip(_pieces(table, entry), widths, strict=True)):
        if wide + after == 0 or (stacked and piece.name == "also" and not entry.also):
            continue
        style = "bold" if piece.bold else ""
        if place == 0 and entry.value is not None:
            colour = background(entry.value)
            style = f"{ink(colour)} on {colour}"
        if place:
            cell.append("\n" if stacked else " ")
        cell.append(piece.text.rjust(wide) + piece.marks.ljust(after), style)
    return cell
