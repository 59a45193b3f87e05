"""The shape of plain values: what a reader expects, declared as types, and a check of values that come from outside.

A record is declared as a `TypedDict`; the names that it requires must be there, and names that it does not know are
left for later versions. `list[…]`, `dict[str, …]`, unions, `Literal` and `Any` mean what they mean elsewhere. A number
must be finite, unless it is an `AnyNumber`, and `Name` is a text that may be part of a path.
"""

import functools
import math
import re
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, TypeVar, cast

from orch.core.reading import LARGEST_INTEGER, Refused, named, shown

T = TypeVar("T")
MOST_SECONDS = 1e12
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,199}")
_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", type(None): "null"}


def is_name(value: Any) -> bool:
    """Return whether a value is a text that may be part of a path.

    >>> is_name("a1-b.c"), is_name("../x"), is_name("a/b"), is_name("")
    (True, False, False, False)
    """
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def is_any_number(value: Any) -> bool:
    """Return whether a value is a number, perhaps an infinite one or NaN, but none that no float can hold."""
    return isinstance(value, float) or (_is_plain(value, int) and not isinstance(value, bool))


def is_seconds(value: Any) -> bool:
    """Return whether a value is a number of seconds that can be added up and shown."""
    return is_any_number(value) and 0 <= value < MOST_SECONDS


def is_count(value: Any) -> bool:
    """Return whether a value is a whole number from 1 that a table of a store can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST_INTEGER


def is_process_id(value: Any) -> bool:
    """Return whether a value is a number that a single process may have: 0 and less mean groups of them."""
    return is_count(value) and value < 2**31


AnyNumber = Annotated[float, "a number", is_any_number]
"""A number that may be infinite or not a number, such as the loss of a trial that diverged."""
Seconds = Annotated[float, "a number of seconds", is_seconds]
"""A time that is not negative and not longer than 30,000 years, so that sums of them are numbers too."""
Count = Annotated[int, "a number from 1", is_count]
ProcessId = Annotated[int, "the id of a process", is_process_id]
"""A number that the operating system takes for a process."""
Name = Annotated[str, "a name", is_name]
"""A text of letters, digits and a few signs, that does not lead out of the folder it is used in."""


def checked(value: Any, kind: type[T], what: str = "it") -> T:
    """Return a value that has the declared shape, or raise `Refused` with the first thing that is wrong with it."""
    for problem in problems(value, kind, what):
        raise Refused(problem)
    return cast(T, value)


def problems(value: Any, kind: Any, what: str = "it") -> Iterator[str]:
    """Yield everything that keeps a value from having the declared shape; `what` is its name in the messages."""
    yield from _problems(value, kind, (what,))


def _problems(value: Any, kind: Any, place: tuple[str, ...]) -> Iterator[str]:
    origin = typing.get_origin(kind)
    if kind is Any:
        return
    if origin is Annotated:
        wanted, fits = kind.__metadata__
        if not fits(value):
            yield _mismatch(value, wanted, place)
    elif origin is typing.Literal:
        if value not in kind.__args__ or isinstance(value, bool):
            yield _mismatch(value, " or ".join(map(repr, kind.__args__)), place)
    elif origin in (typing.Union, types.UnionType):
        found = [list(_problems(value, each, place)) for each in kind.__args__]
        if all(found):
            # A list with one wrong entry is told that, and not that it is neither a list nor a text.
            nearest = [arm for arm in found if not arm[0].startswith(f"{named(*place)} is ")]
            yield nearest[0][0] if nearest else found[0][0]
    elif typing.is_typeddict(kind):
        yield from _problems_of_record(value, kind, place)
    elif origin is dict:
        if not isinstance(value, dict):
            yield _mismatch(value, "a dictionary", place)
        elif not _all_plain(value.values(), kind.__args__[1]):
            for key, each in value.items():
                yield from _problems(each, kind.__args__[1], (*place, str(key)))
    elif origin is list:
        if not isinstance(value, list):
            yield _mismatch(value, "a list", place)
        elif not _all_plain(value, kind.__args__[0]):
            for number, each in enumerate(value, 1):
                yield from _problems(each, kind.__args__[0], (*place, str(number)))
    elif origin is tuple:
        if not isinstance(value, list) or len(value) != len(kind.__args__):
            yield _mismatch(value, f"a list of {len(kind.__args__)}", place)
        else:
            for number, (each, inner) in enumerate(zip(value, kind.__args__, strict=True), 1):
                yield from _problems(each, inner, (*place, str(number)))
    elif not _is_plain(value, kind):
        yield _mismatch(value, _KINDS[kind], place)


def _problems_of_record(value: Any, kind: Any, place: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _mismatch(value, "a dictionary", place)
        return
    for name, hint in _hints(kind).items():
        if name in value:
            yield from _problems(value[name], hint, (*place, name))
        elif name in kind.__required_keys__:
            yield f"{named(*place, name)} is missing"


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name: _bare(hint) for name, hint in hints.items()}


def _bare(hint: Any) -> Any:
    return hint.__args__[0] if typing.get_origin(hint) in (typing.NotRequired, typing.Required) else hint


def _all_plain(values: Any, kind: Any) -> bool:
    """Return whether all of 100,000 ids or seconds are as declared, faster than by looking for a message for each."""
    if kind is str:
        return set(map(type, values)) <= {str}
    return typing.get_origin(kind) is Annotated and all(map(kind.__metadata__[1], values))


def _is_plain(value: Any, kind: Any) -> bool:
    if kind is type(None) or kind is None:
        return value is None
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and _is_finite(value)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_INTEGER
    return isinstance(value, kind)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def _mismatch(value: Any, wanted: str, place: tuple[str, ...]) -> str:
    return f"{named(*place)} is {shown(value)}, and not {wanted}"
