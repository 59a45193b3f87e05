"""An Arrow table as CSV, JSON or Markdown, piece by piece; and its values as text for people."""

import base64
import csv
import datetime
import decimal
import io
import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

MISSING = "–"
_NOTHING = 1e-15
"""Less than this is a rounding error of a sum."""
_DAY = 24 * 3600


def csv_lines(table: pa.Table) -> Iterator[str]:
    """What is missing is empty; lists and structs are JSON."""
    yield _csv_line(column_names(table))
    for row in rows(table):
        yield _csv_line([_csv_value(value) for value in row])


def json_lines(table: pa.Table) -> Iterator[str]:
    """One list of objects, an object to a line. What is not a number (NaN) is null, as what is missing."""
    names, before = column_names(table), "["
    for row in rows(table):
        yield before + json.dumps(dict(zip(names, map(_finite, row), strict=True)), ensure_ascii=False)
        before = ",\n "
    yield "[]\n" if before == "[" else "]\n"


def markdown_lines(table: pa.Table) -> Iterator[str]:
    yield _markdown_line(column_names(table))
    yield _markdown_line(["---:" if is_number(kind) else "---" for kind in table.schema.types])
    for row in rows(table):
        yield _markdown_line([text(value).replace("\\", "\\\\").replace("|", "\\|") for value in row])


def column_names(table: pa.Table) -> list[str]:
    """Each once: two columns of one name get numbers."""
    found: dict[str, None] = {}
    for name in table.column_names:
        unique, number = name, 1
        while unique in found:
            unique, number = f"{name}_{number}", number + 1
        found[unique] = None
    return list(found)


def rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Rows of plain values: numbers, texts, truth values, times, None, and lists and dictionaries of these."""
    for batch in table.to_batches(max_chunksize=10_000):
        columns = [map(_plain, column.to_pylist(maps_as_pydicts="lossy")) for column in batch.columns]
        yield from zip(*columns, strict=True)


def text(value: Any) -> str:
    """A value in one line, for people: numbers rounded, times without fractions of a second."""
    if value is None:
        return MISSING
    if isinstance(value, float):
        return f"{value:.1f}" if 1000 <= abs(value) < math.inf else f"{0.0 if abs(value) < _NOTHING else value:.4g}"
    if isinstance(value, datetime.datetime):
        return value.replace(microsecond=0, tzinfo=None).isoformat(" ")
    words = value if isinstance(value, str) else _csv_value(value)
    return "".join(letter if letter.isprintable() else " " for letter in words)


def is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _plain(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, pa.MonthDayNano):
        return _duration(value.months, value.days, value.nanoseconds / 1e9)
    if isinstance(value, datetime.timedelta):
        return _duration(0, 0, value.total_seconds())
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    return value


def _duration(months: int, days: int, seconds: float) -> str:
    """As DuckDB writes an interval, such as 2 days 01:30:00."""
    days, seconds = days + int(seconds // _DAY), seconds % _DAY
    minutes, rest = divmod(seconds, 60)
    clock = f"{int(minutes // 60):02}:{int(minutes % 60):02}:{rest:09.6f}".removesuffix(".000000")
    return " ".join([*([f"{months} months"] if months else []), *([f"{days} days"] if days else []), clock])


def _csv_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, dict)):
        return json.dumps(_finite(value), ensure_ascii=False)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)


def _finite(value: Any) -> Any:
    """Fit for JSON, which knows no NaN, no infinity and no times."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else value


def _csv_line(values: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()


def _markdown_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
