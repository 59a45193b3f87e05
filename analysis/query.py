"""SQL over tables in memory, by DuckDB in a sandbox: it reads what it is handed and nothing else."""

import contextlib
import glob
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import duckdb
import pyarrow as pa

from orch.analysis.sql_statement import REMEDY, Statement, parse
from orch.core.errors import InvalidQuery, UnknownName

View = Callable[[Collection[str] | None], pa.Table]
"""Reads a table: at least those of these columns that it has, or all."""

READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
    ".parquet": "read_parquet",
}
MEMORY = "50%"
_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "memory_limit": MEMORY,
}
_NO_TABLE = re.compile(r"Table with name (.+?) does not exist")


def run(sql: str, views: Mapping[str, View]) -> pa.Table:
    """The answer to one statement that reads. Of the views, those it mentions are read, and of these only the columns
    it mentions."""
    with sandbox() as connection, _explained(views):
        statement = parse(connection, sql)
        try:
            return _answer(connection, statement, views, statement.columns)
        except duckdb.BinderException:
            if statement.columns is None:
                raise
            # With every column at hand DuckDB can name the ones that may have been meant.
            return _answer(connection, statement, views, None)


@contextlib.contextmanager
def sandbox() -> Iterator[duckdb.DuckDBPyConnection]:
    """No files, no network, no extensions, no variables of this process, and no way to change that."""
    with duckdb.connect(":memory:", config=_CLOSED) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET lock_configuration = true")
        yield connection


def _answer(
    connection: duckdb.DuckDBPyConnection,
    statement: Statement,
    views: Mapping[str, View],
    columns: Collection[str] | None,
) -> pa.Table:
    for name, view in views.items():
        if name.lower() in statement.tables:
            connection.register(name, view(columns))
    return connection.sql(statement.sql).to_arrow_table()


@contextlib.contextmanager
def _explained(views: Collection[str]) -> Iterator[None]:
    """Turns what DuckDB says into a sentence that names the remedy."""
    try:
        yield
    except duckdb.PermissionException:
        raise InvalidQuery(f"a query reads nothing but the views: {REMEDY}") from None
    except duckdb.OutOfMemoryException:
        raise InvalidQuery(f"the query needs more than {MEMORY} of the memory: ask for fewer rows or columns") from None
    except duckdb.Error as error:
        text = str(error).partition("\nLINE ")[0]
        if missing := _NO_TABLE.search(text):
            name = missing[1]
            if "." in name or "/" in name:
                raise InvalidQuery(f"a query reads nothing but the views, and not {name}: {REMEDY}") from None
            raise UnknownName("view", name, views) from None
        sentence = " ".join(text.partition(": ")[2].split())
        raise InvalidQuery(f"the SQL does not work: {sentence} (orch query --schema explains every column)") from None


def read_file(path: str) -> pa.Table:
    """A file that the user hands over: CSV, JSON or Parquet, by its name."""
    reader = READERS.get(Path(path.lower().removesuffix(".gz")).suffix)
    if reader is None:
        raise InvalidQuery(f"{path} is of no known kind: use a file that ends in {', '.join(READERS)}")
    if not Path(path).is_file():
        raise InvalidQuery(f"there is no file {path}: check the name")
    try:
        with duckdb.connect(":memory:") as connection:
            return connection.sql(f"FROM {reader}(?)", params=[glob.escape(path)]).to_arrow_table()
    except duckdb.Error as error:
        reason = " ".join(str(error).partition("\n")[0].split())
        raise InvalidQuery(f"{path} cannot be read ({reason}): check the file") from None
