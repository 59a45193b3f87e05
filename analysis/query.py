"""SQL queries over tables in memory, run by DuckDB in a sandbox that can read nothing but these tables."""

import contextlib
import functools
import glob
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from orch.analysis.query_process import answer_in_process
from orch.analysis.sql_statement import REMEDY, Statement, parse
from orch.core.errors import InvalidQuery, UnknownName
from orch.store import SCHEMAS

View = Callable[[Collection[str] | None], pa.Table]
"""A function that reads a table, with at least these columns, or with all if given None."""

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
_RESERVED_WORDS = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
ALIAS = "_name"
"""A column whose name SQL reserves, such as `group`, can also be asked for with this ending."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a query may use at most. None is no limit."""

    seconds: float | None = None
    """Time that DuckDB works on it."""
    rows: int | None = None
    """Rows of the answer; the rest is left out."""
    memory: str = MEMORY
    threads: int | None = None
    own_process: bool = False
    """Run the query in a process of its own, which is ended at these limits: `seconds`, and `memory` in MB or GB."""


NO_LIMITS = Limits()
MOST_SQL = 1 << 20
"""Characters of a query."""
_NO_TABLE = re.compile(r"Table with name (.+?) does not exist")


def run(sql: str, views: Mapping[str, View], limits: Limits = NO_LIMITS) -> pa.Table:
    """Run one reading statement. Only the views and columns that it mentions are read."""
    if len(sql) > MOST_SQL:
        raise InvalidQuery(f"the query has {len(sql):,} characters: write one of at most {MOST_SQL:,}")
    with sandbox(limits) as connection, _explained(sql, views, limits):
        statement = parse(connection, sql)
        try:
            return _answer(connection, statement, views, statement.columns, limits)
        except duckdb.BinderException:
            if statement.columns is None:
                raise
            # With every column registered, DuckDB's message can suggest the right one.
            return _answer(connection, statement, views, None, limits)


@contextlib.contextmanager
def sandbox(limits: Limits = NO_LIMITS) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection without access to files, network, extensions or variables of this process."""
    config = _CLOSED | {"memory_limit": limits.memory} | ({"threads": limits.threads} if limits.threads else {})
    with duckdb.connect(":memory:", config=config) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET lock_configuration = true")
        yield connection


@contextlib.contextmanager
def file_reader(limits: Limits) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection that reads files, for statements that are not a user's."""
    allowed = ("enable_external_access", "temp_directory")
    config = {name: value for name, value in _CLOSED.items() if name not in allowed}
    with duckdb.connect(":memory:", config=config | {"memory_limit": limits.memory}) as connection:
        yield connection


def _answer(
    connection: duckdb.DuckDBPyConnection,
    statement: Statement,
    views: Mapping[str, View],
    columns: Collection[str] | None,
    limits: Limits,
) -> pa.Table:
    renamed = {name.lower() for name in re.findall(rf"\w+(?={ALIAS}\b)", statement.sql)}
    tables = {
        name: _with_aliases(view(None if columns is None else {*columns, *renamed}), renamed & _reserved())
        for name, view in views.items()
        if name.lower() in statement.tables
    }
    if limits.own_process:
        assert limits.seconds is not None, "a process of its own ends in time"
        return answer_in_process(
            statement.sql, tables, limits.seconds, limits.memory, limits.rows, threads=limits.threads
        )
    for name, table in tables.items():
        connection.register(name, table)
    with _interrupted_after(limits.seconds, connection):
        if limits.rows is None:
            return connection.sql(statement.sql).to_arrow_table()
        return first_rows(connection.sql(statement.sql).to_arrow_reader(), limits.rows)


def first_rows(answer: pa.RecordBatchReader, most: int) -> pa.Table:
    """Read the first rows of an answer, which is computed as far as it is read."""
    batches, num_rows = [], 0
    for batch in answer:
        batches.append(batch)
        num_rows += batch.num_rows
        if num_rows >= most:
            break
    return pa.Table.from_batches(batches, answer.schema).slice(0, most)


def _with_aliases(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Add the columns that a statement asks for by names that SQL does not reserve, such as `group_name`."""
    for name in names:
        if name in table.column_names and f"{name}{ALIAS}" not in table.column_names:
            table = table.append_column(f"{name}{ALIAS}", table[name])
    return table


@functools.cache
def _reserved() -> frozenset[str]:
    """Return the words that SQL wants in quotation marks where they name a column."""
    with duckdb.connect(":memory:") as connection:
        found = connection.sql(_RESERVED_WORDS)
        return frozenset(word for (word,) in found.fetchall())


def alias(column: str) -> str | None:
    """Return the other name that a query may use for a column whose name SQL reserves; None for other columns."""
    return f"{column}{ALIAS}" if column in _reserved() else None


@contextlib.contextmanager
def _interrupted_after(seconds: float | None, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def _explained(sql: str, views: Collection[str], limits: Limits) -> Iterator[None]:
    """Turn errors of DuckDB into messages that name the remedy."""
    try:
        yield
    except (RecursionError, UnicodeEncodeError) as error:
        what = "is nested too deeply" if isinstance(error, RecursionError) else "has characters that are no text"
        raise InvalidQuery(f"the query {what}: write it more simply") from None
    except duckdb.InterruptException:
        raise InvalidQuery(f"the query took longer than {limits.seconds:g} s: {_more('--timeout')}") from None
    except duckdb.PermissionException:
        raise InvalidQuery(f"a query reads nothing but the views: {REMEDY}") from None
    except duckdb.OutOfMemoryException:
        raise InvalidQuery(f"the query needs more than {limits.memory} of memory: {_more('--memory')}") from None
    except duckdb.Error as error:
        text = str(error).partition("\nLINE ")[0]
        if missing := _NO_TABLE.search(text):
            name = missing[1]
            if "." in name or "/" in name:
                raise InvalidQuery(f"a query reads nothing but the views, and not {name}: {REMEDY}") from None
            raise UnknownName("view", name, views) from None
        sentence = " ".join(text.partition(": ")[2].split())
        if isinstance(error, duckdb.ParserException) and (word := _unquoted(sql)):
            remedy = f'for the column, write {alias(word)} or "{word}" in quotation marks'
            raise InvalidQuery(f"the SQL does not work: {word} is a word of SQL: {remedy}") from None
        raise InvalidQuery(f"the SQL does not work: {sentence} (orch query --schema explains every column)") from None


def _more(option: str) -> str:
    return f"ask for less, or give orch query a larger {option}"


def _unquoted(sql: str) -> str | None:
    """Return a column that stands without quotation marks in a statement, although SQL reserves its name."""
    for name in sorted(_reserved().intersection(name for schema in SCHEMAS.values() for name in schema.names)):
        if re.search(rf'(?<!["\w]){name}(?!["\w])(?!\s+(?:by|time)\b)', sql, re.IGNORECASE):
            return name
    return None


def read_file(path: str, limits: Limits) -> pa.Table:
    """Read a CSV, JSON or Parquet file as a table, within limits; the ending of its name says which it is."""
    reader = READERS.get(Path(path.lower().removesuffix(".gz")).suffix)
    if reader is None:
        raise InvalidQuery(f"{path} is of no known kind: use a file that ends in {', '.join(READERS)}")
    if not Path(path).is_file():
        raise InvalidQuery(f"there is no file {path}: check the name")
    assert limits.seconds is not None, "reading ends in time"
    # As the file of a child process, because 11 kB of Parquet can stand for 24 GB.
    literal = "'" + glob.escape(path).replace("'", "''") + "'"
    try:
        return answer_in_process(f"FROM {reader}({literal})", {}, limits.seconds, limits.memory, None, files=True)
    except duckdb.InterruptException:
        reason = f"it took longer than {limits.seconds:g} s"
    except duckdb.OutOfMemoryException:
        reason = f"it needs more than {limits.memory} of memory"
    except duckdb.Error as error:
        reason = " ".join(str(error).partition("\n")[0].split())
    raise InvalidQuery(f"{path} cannot be read ({reason}): check the file")
