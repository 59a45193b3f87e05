"""Write a table to a terminal, a pipe or a file: the options --format and --output, and what they do."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from orch.cli._options import OutputPath
from orch.core.atomic_write import write_atomically
from orch.core.errors import InvalidSettings

if TYPE_CHECKING:
    from pyarrow import Table

FORMATS = ("table", "csv", "json", "markdown", "latex", "parquet")
_SUFFIXES = {
    ".txt": "table",
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".tex": "latex",
    ".parquet": "parquet",
}


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose how a table is written. The command passes their values to `write_table`."""
    options = [
        click.option(
            "--format",
            type=click.Choice(FORMATS),
            help="Format.  [default: from the ending of --output; else table on a terminal, csv in a pipe]",
        ),
        click.option("--output", metavar="FILE", type=OutputPath(dir_okay=False), help="Write to this file."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def check_output(format: str | None, output: str | None) -> str:
    """Return the format to use, or raise an error before any work starts if the output cannot be written."""
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
        raise InvalidSettings(["parquet cannot be shown on a terminal: add --output FILE, or pipe it into a program"])
    return format or ("table" if sys.stdout.isatty() else "csv")


def write_table(
    table: "Table", format: str | None = None, output: str | None = None, caption: str = "", label: str = ""
) -> None:
    """Write a table to standard output, or to a file, which is replaced only once all is written.

    LaTeX with a caption is a float with that label.
    """
    format = check_output(format, output)
    if output is not None:
        write_atomically(Path(output), [_as_bytes(table, format, caption, label)])
    elif format == "parquet":
        sys.stdout.buffer.write(_as_bytes(table, format))
    else:
        _write_text(table, format, sys.stdout, caption, label)


def _write_text(table: "Table", format: str, sink: TextIO, caption: str, label: str) -> None:
    from orch.analysis.table_formats import write_csv, write_json, write_latex, write_markdown
    from orch.cli._tables import print_table, write_text

    if format == "table" and sink.isatty():
        print_table(table)
    elif format == "latex":
        write_latex(table, sink, caption, label)
    else:
        {"table": write_text, "csv": write_csv, "json": write_json, "markdown": write_markdown}[format](table, sink)


def _as_bytes(table: "Table", format: str, caption: str = "", label: str = "") -> bytes:
    if format == "parquet":
        import pyarrow.parquet as pq

        binary = io.BytesIO()
        pq.write_table(table, binary)
        return binary.getvalue()
    text = io.StringIO()
    _write_text(table, format, text, caption, label)
    return text.getvalue().encode()
