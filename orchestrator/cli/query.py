"""`orch query`: SQL over the results."""

import sys
from typing import TYPE_CHECKING

import click

from orch.cli._options import store_option, sweep_scale_options
from orch.cli._output import check_output, output_options, write_table
from orch.cli._sweeps import complete_sweeps, say_note
from orch.core.errors import InvalidQuery, InvalidSettings, OrchError
from orch.sweeps.registry import ALL
from orch.sweeps.scales import LAPTOP

if TYPE_CHECKING:
    from pyarrow import Table

    from orch.analysis.query import Limits
    from orch.analysis.study import Study

LEAST_MEGABYTES, MOST_MEGABYTES = 16, 10_000_000
LONGEST = 31_536_000.0
"""Seconds: a timer of the system takes no century."""


@click.command()
@click.argument("sql", required=False, metavar="SQL|-")
@click.option("--schema", is_flag=True, help="Describe the columns of every view, or of the one named instead of SQL.")
@click.option(
    "--with",
    "named_files",
    multiple=True,
    metavar="NAME=FILE",
    help="Make a file (csv, json or parquet) available as a table of that name. May be repeated.",
)
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="SWEEP|FILE.py",
    shell_complete=complete_sweeps,
    help="Sweep that the view plan lists: built in, your own file, or one that orch status shows, whose recorded code"
    " is run. May be repeated.  [every sweep of the paper]",
)
@sweep_scale_options
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="End the query after so many seconds.",
)
@click.option(
    "--memory",
    type=click.FloatRange(min=0, min_open=True),
    metavar="GB",
    help="End the query when it needs more; its answer may take a quarter.  [half of what the machine has left]",
)
@store_option
@output_options
def query(
    sql: str | None,
    schema: bool,
    named_files: tuple[str, ...],
    sweeps: tuple[str, ...],
    scale: str | None,
    timeout: float,
    memory: float | None,
    store: str,
    format: str | None,
    output: str | None,
) -> None:
    """Query the results in SQL.

    The dialect is DuckDB's; - reads the query from standard input. The views trials, curves and attempts are the stored
    tables; --schema lists their columns, with those of your own settings that the store has. cells summarises the
    trials of each model and task. published has the paper's numbers. plan lists all trials of --sweep at --scale, and
    comparison has our numbers next to the published ones. A query reads these views and the files of --with, and writes
    nothing.

    \b
    Example: orch query "SELECT model, task, max(ood_accuracy) FROM trials GROUP BY ALL ORDER BY ALL"
    """
    check_output(format, output)
    if sql is None and not schema:
        raise InvalidSettings(["there is no query: give SQL, or --schema to see the views and their columns"])
    from orch.analysis.study import Study
    from orch.store import Store
    from orch.usercode import name_sweeps

    limits = _limits(timeout, memory)
    files = _read_files(named_files, limits)
    named = name_sweeps(sweeps, Store.open(store), scale)
    say_note(named)
    study = Study(store, named.catalogue, named.names or (ALL,))
    if schema:
        write_table(_schema(sql, study), format, output)
        return
    assert sql is not None
    answer = study.ask(_read_sql() if sql == "-" else sql, named.scale or LAPTOP.name, files, limits)
    write_table(answer, format, output)


def _limits(timeout: float, memory: float | None) -> "Limits":
    """Return the limits of a query, which runs in a process of its own to be ended at them."""
    from orch.analysis.query import Limits
    from orch.sweeps.memory import available_bytes

    gigabytes = (available_bytes() or 4e9) / 2e9 if memory is None else memory
    megabytes = min(max(LEAST_MEGABYTES, round(gigabytes * 1000)), MOST_MEGABYTES)
    return Limits(seconds=min(timeout, LONGEST), memory=f"{megabytes}MB", own_process=True)


def _read_sql() -> str:
    """Return the query on standard input, which may be cut where it becomes too long to be one."""
    from orch.analysis.query import MOST_SQL

    try:
        return sys.stdin.read(MOST_SQL + 1)
    except UnicodeDecodeError as error:
        raise InvalidQuery(f"the query on standard input is not text ({error}): write it in UTF-8") from None


def _read_files(named_files: tuple[str, ...], limits: "Limits") -> dict[str, "Table"]:
    from orch.analysis.query import read_file

    tables, problems = {}, []
    for text in named_files:
        name, _, path = text.partition("=")
        if not name.isidentifier() or not path:
            problems.append(f"--with {text!r} names no file: write it like --with mine=my.csv")
        elif name in tables:
            problems.append(f"--with {text!r} uses the name {name} again: give it another")
        else:
            try:
                tables[name] = read_file(path, limits)
            except OrchError as error:
                problems.append(str(error))
    if problems:
        raise InvalidSettings(problems)
    return tables


def _schema(name: str | None, study: "Study") -> "Table":
    import pyarrow as pa

    from orch.analysis.arrow_tables import description, to_table
    from orch.analysis.query import alias
    from orch.analysis.study import VIEWS

    rows = []
    for view in [name] if name else VIEWS:
        for field in study.schema(view):
            other = alias(field.name)
            about = description(field) + (f" (in SQL, write {other})" if other else "")
            rows.append({"view": view, "column": field.name, "type": str(field.type), "description": about})
    names = ("view", "column", "type", "description")
    return to_table(rows, pa.schema([(each, pa.string()) for each in names]))
