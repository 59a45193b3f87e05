"""How commands give a table to people, programs and files."""

import io
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orch.core.atomic_write import write_atomically
from orch.core.errors import InvalidSettings

if TYPE_CHECKING:
    from pyarrow import Table

FORMATS = ("table", "csv", "json", "markdown", "parquet")
_SUFFIXES = {".txt": "table", ".csv": "csv", ".json": "json", ".md": "markdown", ".parquet": "parquet"}
MOST_LINES = 200
"""A terminal is shown about so many."""


def output_options(command: Callable) -> Callable:
    """The options of commands that give a table: pass them on to `write_table`."""
    options = [
        click.option(
            "--format",
            type=click.Choice(FORMATS),
            help="How to write the table.  [default: by the name of --output; else table on a terminal, csv in a pipe]",
        ),
        click.option("--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write to a file."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def check_output(format: str | None, output: str | None) -> str:
    """The format to use. What cannot be written is told before any work starts."""
    if output is not None:
        folder = Path(output).absolute().parent
        if not folder.is_dir():
            raise InvalidSettings([f"--output {output}: there is no folder {folder}: make the folder first"])
        suffix = Path(output).suffix.lower()
        if format is None and suffix not in _SUFFIXES:
            raise InvalidSettings(
                [f"--output {output} says no format: add --format, or end it in {', '.join(_SUFFIXES)}"]
            )
        return format or _SUFFIXES[suffix]
    if format == "parquet" and sys.stdout.isatty():
        raise InvalidSettings(["parquet is not for a terminal: add --output FILE, or pipe it on"])
    return format or ("table" if sys.stdout.isatty() else "csv")


def write_table(table: "Table", format: str | None = None, output: str | None = None) -> None:
    """To a file, which is there as a whole or not at all, or to standard output."""
    format = check_output(format, output)
    if output is not None:
        write_atomically(Path(output), _as_bytes(table, format))
    elif format == "parquet":
        sys.stdout.buffer.writelines(_as_bytes(table, format))
    elif format == "table" and sys.stdout.isatty():
        _show(table)
    else:
        for piece in _pieces(table, format):
            sys.stdout.write(piece)


def _pieces(table: "Table", format: str) -> Iterator[str]:
    from orch.cli._formats import csv_lines, json_lines, markdown_lines
    from orch.cli._text_table import text_rows

    if format == "table":
        return text_rows(table, width=None)
    return {"csv": csv_lines, "json": json_lines, "markdown": markdown_lines}[format](table)


def _show(table: "Table") -> None:
    from orch.cli._text_table import text_rows

    num_lines = num_shown = 0
    head, *rows = text_rows(table.slice(0, MOST_LINES), shutil.get_terminal_size().columns)
    click.echo(head, nl=False)
    for row in rows:
        if num_lines >= MOST_LINES:
            break
        click.echo(row, nl=False)
        num_lines, num_shown = num_lines + row.count("\n"), num_shown + 1
    if num_shown < table.num_rows:
        click.echo(f"{table.num_rows - num_shown:,} more rows: --output FILE or a pipe has them all", err=True)


def _as_bytes(table: "Table", format: str) -> Iterator[bytes]:
    if format == "parquet":
        import pyarrow.parquet as pq

        sink = io.BytesIO()
        pq.write_table(table, sink)
        yield sink.getvalue()
    else:
        yield from (piece.encode() for piece in _pieces(table, format))
