"""Tables for people: fitted to the width of a terminal; in a pipe or a file, plain text that is never folded."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TextIO

import click

from orch.analysis.table_formats import column_names, is_number, plain_rows, readable
from orch.core.printable import printable

if TYPE_CHECKING:
    from pyarrow import Table
    from rich.text import Text

MOST_LINES = 200
"""About as many lines of an Arrow table are shown on a terminal."""
_GAP = 2
_LONGEST_WORD = 24
"""A word of a text is not broken unless it is longer than this; a number never is."""
_RECORD_RULE = 40


def print_rows(rows: Sequence[Mapping[str, Any]], title: str) -> None:
    """Print rows of plain values, which may lack some columns of others.

    A cell in colour is rich's `Text`, justified to the right if it is a number.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    numbers = [any(_is_numeric(row.get(name)) for row in rows) for name in names]
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    table = TextTable([printable(name) for name in names], numbers, cells)
    click.secho(printable(title), bold=True)
    text = table.fitted(shutil.get_terminal_size().columns) if sys.stdout.isatty() else table.plain()
    click.echo(text, nl=False)


def print_table(table: "Table") -> None:
    """Print the beginning of an Arrow table on a terminal, and say on standard error how many rows are left."""
    width = shutil.get_terminal_size().columns
    shown = text_table(table.slice(0, MOST_LINES))
    if not shown.fits(width):
        shown = replace(shown, rows=shown.rows[: max(1, MOST_LINES // (len(shown.names) + 1))])
    click.echo(shown.fitted(width), nl=False)
    if left := table.num_rows - len(shown.rows):
        click.echo(f"{left:,} more rows: use --output FILE or a pipe to get them all", err=True)


def write_text(table: "Table", sink: TextIO) -> None:
    """Write an Arrow table as plain text, each row on one line."""
    sink.write(text_table(table).plain())


def text_table(table: "Table") -> "TextTable":
    """Turn an Arrow table into texts without control characters, its numbers rounded for people."""
    return TextTable(
        names=[printable(name) for name in column_names(table)],
        numbers=[is_number(kind) for kind in table.schema.types],
        rows=[[readable(value) for value in row] for row in plain_rows(table)],
    )


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of texts. Numbers are aligned to the right, everything else to the left."""

    names: "Sequence[str]"
    numbers: Sequence[bool]
    """True for each column of numbers."""
    rows: "Sequence[Sequence[str | Text]]"

    def plain(self) -> str:
        """Lay the table out with each row on one line. Rich would need a minute for 50,000 rows."""
        widths = self._widths()

        def line(cells: "Sequence[str | Text]") -> str:
            columns = zip(map(str, cells), widths, self.numbers, strict=True)
            padded = [cell.rjust(width) if number else cell.ljust(width) for cell, width, number in columns]
            return (" " * _GAP).join(padded).rstrip() + "\n"

        rule = "─" * (sum(widths) + _GAP * (len(widths) - 1)) + "\n"
        return "".join([line(self.names), rule, *map(line, self.rows)])

    def fits(self, width: int) -> bool:
        """Return whether the columns fit next to each other once long texts are folded."""
        least = self._least_widths()
        return sum(least) + _GAP * (len(least) - 1) <= width

    def fitted(self, width: int) -> str:
        """Lay the table out with long texts folded, or as one record after the other if even that does not fit."""
        from rich.console import Console

        console = Console(width=width, highlight=False, markup=False, emoji=False)
        with console.capture() as capture:
            for part in self._columns(width) if self.fits(width) else self._records(width):
                console.print(part)
        return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())

    def _columns(self, width: int) -> "list[Any]":
        from rich import box
        from rich.table import Table
        from rich.text import Text

        grid = Table(
            box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="none"
        )
        for name, number, chosen in zip(self.names, self.numbers, self._widths_within(width), strict=True):
            justify: Literal["left", "right"] = "right" if number else "left"
            grid.add_column(Text(name), justify=justify, no_wrap=number, overflow="fold", width=chosen)
        for row in self.rows:
            grid.add_row(*row)
        return [grid]

    def _records(self, width: int) -> "list[Any]":
        from rich.table import Table

        parts: list[Any] = []
        for number, row in enumerate(self.rows, start=1):
            record = Table.grid(padding=(0, _GAP, 0, 0), pad_edge=False)
            record.add_column(no_wrap=True)
            record.add_column(overflow="fold")
            for name, cell in zip(self.names, row, strict=True):
                record.add_row(name, cell)
            parts += [f"── row {number:,} ".ljust(min(width, _RECORD_RULE), "─"), record]
        return parts

    def _widths_within(self, width: int) -> list[int]:
        """Return the widths of columns that fit next to each other: the widest texts are folded first."""
        chosen, least = self._widths(), self._least_widths()
        while sum(chosen) + _GAP * (len(chosen) - 1) > width:
            _, place = max((now, place) for place, now in enumerate(chosen) if now > least[place])
            chosen[place] -= 1
        return chosen

    def _least_widths(self) -> list[int]:
        """Return how narrow each column can be: a text is folded between words."""
        columns = zip(self._widths(), self.numbers, zip(self.names, *self.rows, strict=True), strict=True)
        return [
            full
            if number
            else min(max((len(word) for text in texts for word in str(text).split()), default=0), _LONGEST_WORD)
            for full, number, texts in columns
        ]

    def _widths(self) -> list[int]:
        return [max(map(len, column)) for column in zip(self.names, *self.rows, strict=True)]


def _is_numeric(value: Any) -> bool:
    if isinstance(value, (int, float)):
        return not isinstance(value, bool)
    return getattr(value, "justify", None) == "right"


def _cell(value: Any) -> "str | Text":
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return value if hasattr(value, "justify") else readable(value)
