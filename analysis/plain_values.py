"""The values of an Arrow column as Python's own, with texts in place of times that Python has no value for.

A query may answer with infinite dates, with those of the year 10,000 or before Christ, and with maps whose keys are
lists. pyarrow raises an error for each of these.
"""

import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import Array, Scalar, TimestampType

_EPOCH = datetime.date(1970, 1, 1)
_YEARS, _DAYS = 400, 146_097
"""Years after which the calendar begins again, and their days."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 24 * 3600


def plain_values(column: "Array") -> list[Any]:
    """Return the values of a column."""
    try:
        values: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
        return values
    except (OverflowError, ValueError, TypeError):
        return [_value(each) for each in column]


def _value(scalar: "Scalar") -> Any:
    import pyarrow as pa

    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.MapScalar):
        return {_key(_value(each["key"])): _value(each["value"]) for each in scalar.values}
    if isinstance(scalar, pa.ListScalar):
        return [_value(each) for each in scalar.values]
    if isinstance(scalar, pa.StructScalar):
        return {name: _value(each) for name, each in scalar.items()}
    if isinstance(scalar, pa.UnionScalar):
        return _value(scalar.value)
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        if isinstance(scalar, pa.Date32Scalar):
            return _infinite(scalar.value, 2**31 - 1) or _date(scalar.value)
        if isinstance(scalar, pa.TimestampScalar):
            return _infinite(scalar.value, 2**63 - 1) or _time(scalar.value, scalar.type)
        return str(scalar)


def _key(value: Any) -> Any:
    return str(value) if isinstance(value, (list, dict)) else value


def _infinite(value: int, most: int) -> str:
    """Return DuckDB's word for a date or time that is infinite; nothing for others."""
    return {most: "infinity", -most: "-infinity"}.get(value, "")


def _date(days: int) -> str:
    """Return the date so many days after 1970-01-01.

    >>> _date(2932897), _date(-735160)
    ('10000-01-01', '-0043-03-15')
    """
    periods, rest = divmod(days, _DAYS)
    date = _EPOCH + datetime.timedelta(days=rest)
    year = date.year + periods * _YEARS
    return f"{'-' if year < 0 else ''}{abs(year):04}-{date:%m-%d}"


def _time(ticks: int, kind: "TimestampType") -> str:
    per_second = _PER_SECOND[kind.unit]
    seconds, rest = divmod(ticks, per_second)
    days, of_day = divmod(seconds, _DAY)
    clock = (datetime.datetime.min + datetime.timedelta(seconds=of_day)).time()
    fraction = f"{rest / per_second:.6f}".lstrip("0") if rest else ""
    return f"{_date(days)}T{clock.isoformat()}{fraction}{'+00:00' if kind.tz else ''}"
