"""Queries that are no SQL, too much of it, or ask for more than reading."""

from hypothesis import strategies as st

from tests.hostile.plan import Plan, plan
from tests.hostile.values import json_texts

_SQL = (
    "SELECT", "FROM", "trials", "WHERE", "(", ")", "*", ",", "1", "'x'", "\x1b[2J", '"', "--", "/*", ";", "NULL",
    "::INT",
    "model", "count(*)", "GROUP BY ALL", "ORDER BY 1", "repeat('x', 1000)", "range(10)", "UNION", "WITH a AS", "a",
    "COPY",
    "read_csv('/etc/passwd')", "ATTACH 'x'", "PRAGMA version", "$1", "?", "{'a': 1}", "[1]", "0/0", "1e999",
    "\U0001f4a3", "cells",
    "published", "EXPLAIN", "INSTALL httpfs", "getenv('HOME')", "sqrt(-1)", "'\ud800'", "DESCRIBE", "PIVOT", "JOIN",
    "USING (x)",
)  # fmt: skip
_WHOLE_SQL = (
    "SELECT " + "(" * 2000 + "1" + ")" * 2000,
    "SELECT " + "-" * 5000 + "1",
    "SELECT 1" + " UNION SELECT 1" * 400,
    "SELECT '\x1b[8mx' AS \"\x1b]0;y\x07\"",
    "SELECT chr(27) || '[8m' AS a, chr(155) AS b, chr(8238) AS c",
    "SELECT error('\x1b[2Jboom')",
    'SELECT * FROM "\x1b[2J"',
    "SELECT 'x' LIKE '" + "%" * 300 + "'",
    "SELECT " + ",".join(f"{n} AS c" for n in range(500)),
    "SELECT 170141183460469231731687303715884105727 + 1",
    "SELECT DATE '99999-01-01', TIMESTAMP '-infinity', DATE '0044-03-15 (BC)', 'infinity'::TIMESTAMP_S",
    "SELECT [DATE 'infinity'], MAP {[1]: TIMESTAMPTZ 'infinity'}, {'a': DATE '-infinity'}",
    "SELECT INTERVAL 999999999 YEARS",
    "SELECT INTERVAL 100000000 YEARS, TIME '24:00:00'",
    "SELECT 'nan'::DOUBLE, 'inf'::FLOAT, 1e308 * 10",
    "SELECT [1, [2]]",
    "SELECT MAP {'a': 1}, {'b': [1, 2]}, 'x'::BLOB, '1'::BIT, uuid()",
    "SELECT x FROM trials, LATERAL (SELECT 1 AS x)",
    "",
    ";",
    "\x00",
    "SELECT 1;" * 50,
)


def sql() -> st.SearchStrategy[Plan]:
    """Draw a query that is given as an argument or on standard input."""
    texts = st.one_of(
        st.lists(st.sampled_from(_SQL), max_size=14).map(" ".join), st.sampled_from(_WHOLE_SQL), json_texts
    )
    formats = st.sampled_from(("table", "csv", "json", "markdown", "latex", None))

    def make(text: str, format: str | None) -> Plan:
        more = () if format is None else ("--format", format)
        limits = ("--timeout", "5", "--memory", "0.2")
        return plan(
            "query", "-", *more, *limits, about=f"SQL {text[:60]!r}", given=text.encode(errors="replace").decode()
        )

    return st.builds(make, texts, formats)
