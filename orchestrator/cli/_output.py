"""Everything that commands print: text for people, data for programs, and tables with the options of their format.

Texts come from stores, models, hosts and files of anybody. `echo` and `echo_data` keep control characters from the
terminal, so commands use these, and `echo_laid_out` only for text that was cleaned before it was coloured.
"""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from orch.cli._options import WRITTEN, OutputPath
from orch.core.atomic_write import write_atomically
from orch.core.errors import InvalidSettings
from orch.core.printable import printable

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


def echo(text: object = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print text for people, perhaps of several lines, bold, dim or in a colour. Control characters become spaces."""
    click.secho("\n".join(map(printable, str(text).split("\n"))), err=err, nl=nl, **style)


def echo_data(text: str, *, nl: bool = True) -> None:
    """Print data for programs: exactly into a pipe or a file, and on a terminal without control characters."""
    if sys.stdout.isatty():
        echo(text, nl=nl)
    else:
        click.echo(text, nl=nl, color=True)  # without it, click would take out what looks like a colour


def echo_laid_out(text: str, *, err: bool = False) -> None:
    """Print text as it is, with the colours that it was given: whoever laid it out has made its parts printable."""
    click.echo(text, nl=False, err=err)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose how a table is written. The command passes their values to `write_table`."""
    options = [
        click.option(
            "--format",
            type=click.Choice(FORMATS),
            help="Format.  [default: from the ending of --output; else table on a terminal, csv in a pipe]",
        ),
        click.option(
            "--output", metavar="FILE", type=OutputPath(dir_okay=False, endings=WRITTEN), help="Write to this file."
        ),
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
    elif sink.isatty():
        data = io.StringIO()
        _write_text(table, format, data, caption, label)
        echo_data(data.getvalue(), nl=False)
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
