"""The space of a search: the settings it varies and their values, parsed from what a user writes. Imports no Optuna."""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orch.core.errors import InvalidSettings, UnknownName
from orch.core.settings import field_types
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.trial import Trial

Value = int | float | bool | str
Params = dict[str, Value]
"""One point: a value for each varied setting."""

DECADE = 10.0
"""Ranges that span at least this factor are searched by their logarithm."""
DIGITS = 3
"""A number drawn from a range is rounded to this many significant digits."""
_SEEDS = {"init_seed": "--seeds", "data_seed": "--seeds"}
_FORM = "write it like rank=1,2,4 or learning_rate=1e-4..1e-2"


@dataclass(frozen=True, slots=True)
class Dimension:
    """One varied setting: a list of values, or a range."""

    name: str
    values: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    """Whether the numbers of a range are whole."""

    @property
    def is_range(self) -> bool:
        return not self.values

    @property
    def is_ordered(self) -> bool:
        """Whether it is a list of increasing numbers."""
        numbers = [value for value in self.values if not isinstance(value, (bool, str))]
        return not self.is_range and len(numbers) == len(self.values) and numbers == sorted(numbers)

    @property
    def is_logarithmic(self) -> bool:
        return self.is_range and self.low > 0 and self.high / self.low >= DECADE

    def rounded(self, number: float) -> Value:
        """Round a number of the range to the value that a point has."""
        if self.whole:
            return round(number)
        return min(max(float(f"{number:.{DIGITS}g}"), self.low), self.high)

    @property
    def ends(self) -> tuple[Value, ...]:
        """All values of a list, or both ends of a range."""
        if not self.is_range:
            return self.values
        return (int(self.low), int(self.high)) if self.whole else (self.low, self.high)

    def has(self, value: Value) -> bool:
        """Return whether a value is one of the list, or a number in the range."""
        if not self.is_range:
            return any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in self.values)
        return isinstance(value, (int, float)) and not isinstance(value, bool) and self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.name}={('..' if self.is_range else ',').join(map(str, self.ends))}"


@dataclass(frozen=True, slots=True)
class Space:
    """All settings that a search varies."""

    dimensions: tuple[Dimension, ...]

    def __getitem__(self, name: str) -> Dimension:
        return next(each for each in self.dimensions if each.name == name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.dimensions)

    def has(self, params: Mapping[str, Any]) -> bool:
        """Return whether a point, perhaps one that was read from a store, has a possible value for each setting."""
        return params.keys() == {*self.names} and all(each.has(params[each.name]) for each in self.dimensions)

    @property
    def is_finite(self) -> bool:
        return not any(each.is_range for each in self.dimensions)

    def points(self, fixed: Mapping[str, Value] | None = None) -> Iterator[Params]:
        """Yield every combination of the lists and the ends of the ranges that has the `fixed` values."""
        fixed = fixed or {}
        choices = [(fixed[each.name],) if each.name in fixed else each.ends for each in self.dimensions]
        return (dict(zip(self.names, values, strict=True)) for values in itertools.product(*choices))

    def __str__(self) -> str:
        return " ".join(map(str, self.dimensions))


def parse_space(
    texts: Sequence[str],
    task: str,
    model: str,
    fixed: Mapping[str, Any],
    definitions: Definitions = BUILT_IN_DEFINITIONS,
) -> Space:
    """Parse the values of `--vary`, or raise one error that lists everything wrong with them."""
    hints = _hints(task, model, definitions)
    problems: list[str] = []
    dimensions: list[Dimension] = []
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values.strip():
            problems.append(f"--vary {text!r} gives no values: {_FORM}")
        elif name in _SEEDS:
            problems.append(f"--vary {name}: every point is trained with the same seeds: set their number with --seeds")
        elif name not in hints:
            problems.append(f"--vary: {UnknownName(f'setting of {model} on {task}', name, hints)}")
        elif name in fixed:
            problems.append(f"{name} is both varied and fixed: leave out --{name.replace('_', '-')}, or --vary {name}")
        elif name in (each.name for each in dimensions):
            problems.append(f"--vary {name} is given twice: give all its values in one list")
        else:
            try:
                dimensions.append(_dimension(name, values.strip(), hints[name]))
            except ValueError as error:
                problems.append(f"--vary {text!r}: {error}")
    if not texts:
        problems.append(f"nothing is varied: add --vary; {_FORM}")
    if problems:
        raise InvalidSettings(problems)
    return Space(tuple(dimensions))


def _hints(task: str, model: str, definitions: Definitions) -> dict[str, Any]:
    problems = []
    named: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
        ("task", task, definitions.tasks),
        ("model", model, definitions.models),
    )
    for kind, name, registry in named:
        if name not in registry:
            problems.append(str(UnknownName(kind, name, definitions.task_names if kind == "task" else registry)))
    if problems:
        raise InvalidSettings(problems)
    hints: dict[str, Any] = {}
    for owner in (Trial, definitions.models[model], definitions.tasks[task]):
        hints |= field_types(owner)
    return {name: hint for name, hint in hints.items() if name not in ("task", "model")}


def _dimension(name: str, text: str, hint: Any) -> Dimension:
    if hint not in (int, float, bool, str):
        raise ValueError("it is itself a list, which cannot be varied: leave it out")
    low, dots, high = text.partition("..")
    if not dots:
        values = tuple(_value(part.strip(), hint) for part in text.split(","))
        if len(set(values)) < len(values):
            raise ValueError("a value is given twice: leave one out")
        if len(values) < 2:
            raise ValueError(f"one value is not varied: give more, or set --{name.replace('_', '-')} {text}")
        return Dimension(name, values)
    if hint not in (int, float):
        raise ValueError("a range is of numbers: give a list, such as a,b,c")
    first, last = _value(low.strip(), hint), _value(high.strip(), hint)
    if not float(first) < float(last):
        raise ValueError(f"a range goes up: write {high}..{low}")
    return Dimension(name, low=float(first), high=float(last), whole=hint is int)


def _value(text: str, hint: Any) -> Value:
    if hint is bool:
        known = {"yes": True, "true": True, "no": False, "false": False}
        if text.lower() not in known:
            raise ValueError(f"{text!r} is neither yes nor no: use these")
        return known[text.lower()]
    try:
        value: int | float | str = hint(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a {'whole number' if hint is int else 'number'}: {_FORM}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{text!r} is not a number that can be used: {_FORM}")
    return value


def canonical_point(params: Mapping[str, Value]) -> str:
    """Return a text that is equal for equal points."""
    return json.dumps(dict(params), sort_keys=True, separators=(",", ":"))


def describe_point(params: Mapping[str, Value]) -> str:
    """Describe a point for people, such as `rank 64, learning rate 0.001`."""
    texts = (f"{value:g}" if isinstance(value, float) else str(value) for value in params.values())
    return ", ".join(f"{name.replace('_', ' ')} {text}" for name, text in zip(params, texts, strict=True))
