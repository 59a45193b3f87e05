"""The formats in which an Arrow table is written for programs and documents: CSV, JSON, Markdown and LaTeX.

pyarrow's own CSV writer quotes every text and refuses lists, and pandas is too slow to import for a light command.
"""

import base64
import csv
import datetime
import decimal
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from orch.analysis.plain_values import plain_values
from orch.core.printable import printable

if TYPE_CHECKING:
    from pyarrow import DataType, Table

MISSING = "–"
_ROUNDING_ERROR = 1e-15
"""A sum that is smaller than this is shown as zero."""
_DAY = 24 * 3600


def write_csv(table: "Table", sink: TextIO) -> None:
    """Write CSV in which a missing value is empty, and lists and structs are JSON."""
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(column_names(table))
    writer.writerows([_exact_text(value) for value in row] for row in plain_rows(table))


def write_json(table: "Table", sink: TextIO) -> None:
    """Write a list of objects, one to a line. NaN and infinity are null, like a missing value."""
    names, before = column_names(table), "["
    for row in plain_rows(table):
        values = dict(zip(names, map(_json_value, row), strict=True))
        sink.write(before + _spelled(json.dumps(values, ensure_ascii=False)))
        before = ",\n "
    sink.write("[]\n" if before == "[" else "]\n")


def write_markdown(table: "Table", sink: TextIO) -> None:
    """Write a Markdown table with values rounded as for people."""

    def write_line(cells: Sequence[str]) -> None:
        sink.write(f"| {' | '.join(cells)} |\n")

    write_line([_markdown_cell(name) for name in column_names(table)])
    write_line(["---:" if is_number(kind) else "---" for kind in table.schema.types])
    for row in plain_rows(table):
        write_line([_markdown_cell(readable(value)) for value in row])


def _markdown_cell(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace("|", "\\|")


def _spelled(text: str) -> str:
    """Return JSON without control characters: it has a spelling for each of them.

    >>> _spelled('"\\x9bé"')
    '"\\\\u009bé"'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _spelled_character(each) for each in text)


def _spelled_character(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) < 1 << 16 else json.dumps(character)[1:-1]


def write_latex(table: "Table", sink: TextIO, caption: str = "", label: str = "") -> None:
    """Write a LaTeX table with values rounded as for people; with a caption it is a float with that label."""
    from orch.analysis.latex_table import latex_table

    numbers = [is_number(kind) for kind in table.schema.types]
    rows = [
        [re.sub("^-", "−", text) if number else text for text, number in zip(map(readable, row), numbers, strict=True)]
        for row in plain_rows(table)
    ]
    sink.write(latex_table(column_names(table), numbers, rows, caption, label))


def column_names(table: "Table") -> list[str]:
    """Return the names of the columns, with a number appended to a name that occurs again."""
    found: dict[str, None] = {}
    for name in table.column_names:
        unique, number = name, 1
        while unique in found:
            unique, number = f"{name}_{number}", number + 1
        found[unique] = None
    return list(found)


def is_number(kind: "DataType") -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def plain_rows(table: "Table") -> Iterator[tuple[Any, ...]]:
    """Yield each row as numbers, texts, booleans, times, None, and lists and dictionaries that are valid JSON."""
    for batch in table.to_batches(max_chunksize=10_000):
        columns = [map(_plain, plain_values(column)) for column in batch.columns]
        yield from zip(*columns, strict=True)


def readable(value: Any) -> str:
    """Return a value as one line for people: numbers rounded, times without fractions of a second."""
    if value is None:
        return MISSING
    if isinstance(value, float):
        rounded = 0.0 if abs(value) < _ROUNDING_ERROR else value
        return f"{rounded:.1f}" if 1000 <= abs(value) < math.inf else f"{rounded:.4g}"
    if isinstance(value, datetime.datetime):
        return value.replace(microsecond=0, tzinfo=None).isoformat(" ")
    return printable(_exact_text(value))


def _plain(value: Any) -> Any:
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.timedelta):
        return _interval(0, 0, value.total_seconds())
    if isinstance(value, tuple):  # pyarrow's MonthDayNano
        months, days, nanoseconds = value
        return _interval(months, days, nanoseconds / 1e9)
    if isinstance(value, list):
        return [_json_value(_plain(item)) for item in value]
    if isinstance(value, dict):
        return {str(name): _json_value(_plain(item)) for name, item in value.items()}
    return value


def _interval(months: int, days: int, seconds: float) -> str:
    """Return an interval as DuckDB writes it, such as 2 days 01:30:00."""
    days, seconds = days + int(seconds // _DAY), seconds % _DAY
    minutes, rest = divmod(seconds, 60)
    clock = f"{int(minutes // 60):02}:{int(minutes % 60):02}:{rest:09.6f}".removesuffix(".000000")
    return " ".join([*([f"{months} months"] if months else []), *([f"{days} days"] if days else []), clock])


def _json_value(value: Any) -> Any:
    """Return what stands for a plain value in JSON, which has no NaN, no infinity and no times."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else value


def _exact_text(value: Any) -> str:
    """Return a plain value with every digit, and empty text for a missing one."""
    if value is None:
        return ""
    if isinstance(value, (bool, list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return str(_json_value(value)) if isinstance(value, (datetime.date, datetime.time)) else str(value)
