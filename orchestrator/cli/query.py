"""`orch query`: SQL over the results."""

import sys
from typing import TYPE_CHECKING

import click

from orch.cli._options import scale_option, store_option
from orch.cli._output import check_output, output_options, write_table

if TYPE_CHECKING:
    from pyarrow import Table


@click.command()
@click.argument("sql", required=False, metavar="SQL|-")
@click.option("--schema", is_flag=True, help="Explain every column of every view, or of the one named in place of SQL.")
@click.option(
    "--with",
    "handed",
    multiple=True,
    metavar="NAME=FILE",
    help="Hand over a file (csv, json or parquet) as a table of that name. May be repeated.",
)
@scale_option
@store_option
@output_options
def query(
    sql: str | None,
    schema: bool,
    handed: tuple[str, ...],
    scale: str,
    store: str,
    format: str | None,
    output: str | None,
) -> None:
    """Ask the results in SQL (DuckDB's), from an argument or, with -, from standard input.

    The views: trials, curves and attempts as they are stored; cells, the trials of each model and task summed up;
    published, the paper's numbers; plan and comparison, all trials that --scale asks for, and the published numbers
    with ours beside them. A query only reads, and reads nothing else but what --with hands over.

    \b
    Example: orch query "SELECT model, task, max(ood_accuracy) FROM trials GROUP BY ALL ORDER BY ALL"
    """
    from orch.core.errors import InvalidSettings

    check_output(format, output)
    if schema:
        write_table(_schema(sql), format, output)
        return
    if sql is None:
        raise InvalidSettings(["there is nothing to ask: give SQL, or --schema to see what can be asked"])
    from orch.analysis import load

    answer = load(store).ask(sys.stdin.read() if sql == "-" else sql, scale, _read_handed(handed))
    write_table(answer, format, output)


def _read_handed(handed: tuple[str, ...]) -> dict[str, "Table"]:
    from orch.analysis.query import read_file
    from orch.core.errors import InvalidSettings, OrchError

    tables, problems = {}, []
    for text in handed:
        name, _, path = text.partition("=")
        if not name.isidentifier() or not path:
            problems.append(f"--with {text!r} hands over nothing: write it like --with mine=my.csv")
        elif name in tables:
            problems.append(f"--with {text!r} uses the name {name} again: give it another")
        else:
            try:
                tables[name] = read_file(path)
            except OrchError as error:
                problems.append(str(error))
    if problems:
        raise InvalidSettings(problems)
    return tables


def _schema(name: str | None) -> "Table":
    import pyarrow as pa

    from orch.analysis.arrow_tables import description, to_table
    from orch.analysis.study import VIEWS, view_schema

    rows = [
        {"view": view, "column": field.name, "type": str(field.type), "description": description(field)}
        for view in ([name] if name else VIEWS)
        for field in view_schema(view)
    ]
    names = ("view", "column", "type", "description")
    return to_table(rows, pa.schema([(each, pa.string()) for each in names]))
