"""A SQL statement, parsed by DuckDB: whether it only reads, and which tables and columns it mentions."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from orch.core.errors import InvalidQuery

REMEDY = "ask the views, or hand a file over with --with name=FILE"

_READING = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "PIVOT", "UNPIVOT", "DESCRIBE", "SHOW", "SUMMARIZE", "(")
_WRITING = {"INSERT", "UPDATE", "DELETE", "MERGE", "COPY"}
"""Writing commands that may occur within a WITH, which DuckDB then reports as a SELECT."""
_EXPLAIN = re.compile(r"\bexplain\b(\s+analyze\b|\s*\(\s*(format|analyze)\b[^)]*\))*", re.IGNORECASE)
_REACHING_OUT = re.compile(
    r"(read_|parquet_|duckdb_|pragma_|sniff_|python_|json_execute|glob|query|getenv|which_secret"
    r"|\w*external_resource|\w*_scan)\w*"
)
"""Functions that read files, DuckDB's state or memory. The sandbox stops most of them with a worse message."""
_ANY_COLUMN = {"STAR", "POSITIONAL_REFERENCE", "PIVOT", "SHOW_REF"}


@dataclass(frozen=True, slots=True)
class Statement:
    """One reading statement. Names are in lower case."""

    sql: str
    tables: frozenset[str]
    """Every table that it mentions, and possibly other names."""
    columns: frozenset[str] | None
    """Every column that it mentions, and possibly other names; None if any column may be meant, as with `*`."""


def parse(connection: duckdb.DuckDBPyConnection, sql: str) -> Statement:
    """Parse the one statement of a text; raise an error if it does more than read."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        count = f"{len(statements)} statements" if statements else "no statement"
        raise InvalidQuery(f"a query is one statement, and this is {count}: write one SELECT")
    kind = statements[0].type.name
    if kind == "EXPLAIN":
        inner = parse(connection, _EXPLAIN.sub("", sql, count=1))
        return Statement(sql, inner.tables, inner.columns)
    words = _words(sql)
    # A PIVOT over values that are not listed counts as several statements, whatever is done with it.
    if kind not in ("SELECT", "MULTI") or words[0] not in _READING:
        raise _refusal(words[0])
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if following == "(" and _REACHING_OUT.fullmatch(word.strip('"').lower()):
            raise InvalidQuery(f"a query reads nothing but the views, so {word.lower()} is not allowed: {REMEDY}")
    tree = json.loads(connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()[0][0])
    if tree["error"]:
        for word in _WRITING & {*words}:
            raise _refusal(word)
        return Statement(sql, frozenset(re.findall(r"\w+", sql.lower())), None)
    nodes = list(_nodes(tree))
    for node in nodes:
        kind = str(node.get("type"))
        if kind.endswith("_QUERY_NODE"):
            raise _refusal(kind.partition("_")[0])
        if node.get("show_type") == "SHOW_SPECIAL":
            raise InvalidQuery(f"{words[0]} knows no views before they are read: orch query --schema lists them")
    tables = frozenset(node["table_name"].lower() for node in nodes if "table_name" in node)
    return Statement(sql, tables, None if _may_be_any(nodes, tables) else frozenset(_texts(tree)))


def _refusal(word: str) -> InvalidQuery:
    return InvalidQuery(f"a query only reads, and {word} does more: write a SELECT")


def _words(sql: str) -> list[str]:
    """Return the tokens without comments, in upper case unless quoted."""
    tokens = duckdb.tokenize(sql)
    ends = [place for place, _ in tokens[1:]] + [len(sql)]
    texts = [
        sql[start:end].strip()
        for (start, kind), end in zip(tokens, ends, strict=True)
        if kind != duckdb.token_type.comment
    ]
    return [text if text[:1] in "'\"" else text.upper() for text in texts if text != ";"]


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _nodes(child)


def _texts(value: Any) -> Iterator[str]:
    for node in _nodes(value):
        for child in node.values():
            if isinstance(child, str):
                yield child.lower()
            elif isinstance(child, list):
                yield from (text.lower() for text in child if isinstance(text, str))


def _may_be_any(nodes: list[dict[str, Any]], tables: frozenset[str]) -> bool:
    """Return whether columns may be meant without being named: by `*`, NATURAL, position, or a row as a whole.

    The star that stands for ORDER BY ALL means only columns that are selected.
    """
    orders = (order["expression"] for node in nodes if node.get("type") == "ORDER_MODIFIER" for order in node["orders"])
    by_all = [each for each in orders if each["type"] == "STAR" and each["columns"] and each["expr"] is None]
    rows = tables | {node["alias"].lower() for node in nodes if "alias" in node and "class" not in node}
    return any(
        ((kind := str(node.get("type"))) in _ANY_COLUMN and node not in by_all)
        or node.get("ref_type") == "NATURAL"
        or node.get("column_name_alias")
        or (kind == "COLUMN_REF" and len(names := node["column_names"]) == 1 and names[0].lower() in rows)
        for node in nodes
    )
