"""The chart of a query's answer, chosen by the types of its columns."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from markupsafe import Markup
from pyarrow import types

from orch.analysis.table_formats import is_number, plain_rows, readable
from orch.serving.charts import NUM_COLOURS, Point, bar_chart, line_chart

MOST_BARS, MOST_POINTS = 40, 5000
_ENOUGH = 3
"""Points that make a line."""


def answer_chart(answer: pa.Table) -> Markup:
    """Draw an answer as lines over a column of numbers or times, or as bars for rows that texts name.

    Lines are drawn if the first column is a number, or if texts name several numbers each. The last number is the one
    that is drawn. The result is empty if the columns suit neither.
    """
    kinds = [_kind(field.type) for field in answer.schema]
    numbers = [place for place, kind in enumerate(kinds) if kind == "number"]
    texts = [place for place, kind in enumerate(kinds) if kind == "text"]
    if answer.num_rows < 2 or not numbers:
        return Markup("")
    if kinds[0] in ("number", "time") and numbers[-1] > 0:
        return _lines(answer, 0, texts, numbers[-1:] if texts else [place for place in numbers if place])
    if texts and len(numbers) > 1:
        drawing = _lines(answer, numbers[0], texts, numbers[-1:])
        if drawing:
            return drawing
    return _bars(answer, numbers[-1]) if texts and answer.num_rows <= MOST_BARS else Markup("")


def _lines(answer: pa.Table, across: int, texts: Sequence[int], ups: Sequence[int]) -> Markup:
    """Draw these columns over another: a line for each column, or for each combination of the texts."""
    names = answer.column_names
    series: dict[str, list[Point]] = {}
    for row in plain_rows(answer.slice(0, MOST_POINTS)):
        x = _number(row[across])
        for place in ups:
            y = _number(row[place])
            if x is not None and y is not None:
                name = ", ".join(readable(row[text]) for text in texts) if texts else names[place]
                series.setdefault(name, []).append((x, y))
    if not series or len(series) > NUM_COLOURS or min(map(len, series.values())) < _ENOUGH:
        return Markup("")
    return line_chart(
        {name: sorted(points) for name, points in series.items()},
        names[across],
        names[ups[0]] if len(ups) == 1 else "value",
    )


def _bars(answer: pa.Table, value: int) -> Markup:
    bars = [
        (" ".join(readable(cell) for cell in row[:value]) or readable(row[-1]), number)
        for row in plain_rows(answer)
        if (number := _number(row[value])) is not None
    ]
    return bar_chart(bars, answer.column_names[value]) if bars else Markup("")


def _kind(kind: pa.DataType) -> str:
    if is_number(kind):
        return "number"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "time"
    return "text" if types.is_string(kind) or types.is_large_string(kind) or types.is_boolean(kind) else "other"


def _number(value: Any) -> float | None:
    """Return a finite number, or the seconds of a time; None for anything else."""
    if hasattr(value, "timestamp"):
        return float(value.timestamp())
    if isinstance(value, (int, float)) and abs(value) < float("inf"):
        return float(value)
    return None
