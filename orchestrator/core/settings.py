"""Settings: frozen dataclasses of plain values, with descriptions, conversion to dictionaries, and a canonical form.

Tasks, models and trials are such settings. This file uses only the standard library, so every module may import it.
"""

import contextlib
import dataclasses
import functools
import json
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from orch.core.errors import InvalidSettings, OrchError, UnknownName
from orch.core.reading import LARGEST_INTEGER, shown

T = TypeVar("T")
_MISSING = object()
_LARGEST = {int: LARGEST_INTEGER, float: sys.float_info.max}
_MISMATCH = {int: "is not a whole number", float: "is not a number", bool: "is not true or false", str: "is not a text"}


def setting(default: Any, description: str, *, past: Any = _MISSING, identity: bool = True) -> Any:
    """Declare a dataclass field with a default and a sentence about it.

    `past` is for a field that is added after results exist: the value that describes earlier results. While a config
    has this value, the field is left out of its identity, so that earlier results keep their ids.

    A field without `identity` changes only what people read, such as a name: configs that differ in it are equal and
    have one id.
    """
    metadata = {"description": description} | ({} if past is _MISSING else {"past": past})
    return dataclasses.field(default=default, metadata=metadata, compare=identity)


def describe(field: dataclasses.Field[Any]) -> str:
    """Return the sentence about a field; empty if it has none."""
    return str(field.metadata.get("description", ""))


def named_value(name: str, value: Any) -> str:
    """Return a setting with its value, for people.

    >>> named_value("kernel_size", 4), named_value("gated", True), named_value("moduli", (2, 3))
    ('kernel size 4', 'gated yes', 'moduli 2,3')
    """
    return f"{name.replace('_', ' ')} {shown_value(value)}"


@functools.lru_cache(maxsize=1 << 12)  # thousands of trials share few models and tasks
def full_summary(config: Any, ignored: str) -> str:
    """Return a config's `summary`, and the settings that it does not depend on and that differ from their defaults.

    The setting `ignored` is left out, and so are those that change nothing but names.
    """
    changed = []
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if not field.compare or field.name == ignored or value == field.default:
            continue
        with contextlib.suppress(OrchError):  # a setting that has no usable default is part of the summary
            if dataclasses.replace(config, **{field.name: field.default}).summary == config.summary:
                changed.append(named_value(field.name, value))
    return ", ".join(filter(None, (config.summary, *changed)))


def shown_value(value: Any) -> str:
    """Return the value of a setting, for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def field_types(config_type: type) -> Mapping[str, Any]:
    """Return the declared type of every field of a settings class."""
    return _field_types(config_type)


@functools.cache  # not on `field_types`, because mypy does not accept a dataclass type as hashable
def _field_types(config_type: type) -> Mapping[str, Any]:
    hints = typing.get_type_hints(config_type)
    return types.MappingProxyType({field.name: hints[field.name] for field in dataclasses.fields(config_type)})


def to_dict(config: Any) -> dict[str, Any]:
    """Return the settings as plain values, with lists in place of tuples as in JSON."""
    return {field.name: _plain(getattr(config, field.name)) for field in dataclasses.fields(config)}


def canonical(config: Any) -> dict[str, Any]:
    """Return what identifies a config: its values in their declared types, without later fields at their past value."""
    config_type: type = type(config)
    values = {}
    for name, hint, past in _identifying(config_type):
        value = _coerce(getattr(config, name), hint)
        if past is _MISSING or value != past:
            values[name] = _plain(value)
    return values


@functools.cache
def _identifying(config_type: type) -> list[tuple[str, Any, Any]]:
    """Return the name, type and past value of every field that identifies a config.

    It is cached, because plans identify 10,000 trials.
    """
    hints = field_types(config_type)
    fields = [field for field in dataclasses.fields(config_type) if field.compare]
    return [(field.name, hints[field.name], field.metadata.get("past", _MISSING)) for field in fields]


def canonical_json(config: Any, known: Mapping[str, str]) -> str:
    """Return `canonical` as JSON with sorted keys, given the JSON of some fields.

    It is faster than `json.dumps` for plans of many trials, which share the JSON of many fields.
    """
    texts = dict(known)
    config_type: type = type(config)
    for name, hint, past in _identifying(config_type):
        if name not in known:
            value = getattr(config, name)
            if type(value) is tuple:
                texts[name] = _json_tuple(value, hint)
                continue
            if type(value) is not hint:
                value = _coerce(value, hint)
            if past is _MISSING or value != past:
                texts[name] = repr(value) if type(value) in (int, float) else json.dumps(value)
    return "{" + ",".join(f'"{name}":{texts[name]}' for name in sorted(texts)) + "}"


def number_json(value: Any, hint: type) -> str:
    """Return a number in the declared type `hint` as `canonical_json` writes it."""
    return repr(value if type(value) is hint else _coerce(value, hint))


@functools.lru_cache(maxsize=1 << 10)
def _json_tuple(value: tuple[Any, ...], hint: Any) -> str:
    return json.dumps(_coerce(value, hint), separators=(",", ":"))


def from_dict(config_type: type[T], values: Mapping[str, Any], kind: str = "setting") -> T:
    """Return a config from the values that `to_dict` returned.

    An unknown name raises an error that suggests the nearest. Wrong types are reported all at once.
    """
    return config_type(**coerced(config_type, values, kind))


def coerced(config_type: type, values: Mapping[str, Any], kind: str = "setting") -> dict[str, Any]:
    """Return settings in their declared types, or raise an error about unknown names or about all wrong types."""
    hints = field_types(config_type)
    for name in values:
        if name not in hints:
            raise UnknownName(kind, name, hints)
    found, problems = {}, []
    for name, value in values.items():
        try:
            found[name] = _coerce(value, hints[name])
        except TypeError as error:
            problems.append(f"{name} {shown(value)} {error}")
    if problems:
        raise InvalidSettings(problems)
    return found


def type_problems(config: Any) -> list[str]:
    """List the settings whose values are not of their declared types, and the numbers that no table of a store holds.

    A config that is made with its class, and not from a dictionary, accepts whatever it is given.
    """
    found = []
    config_type: type = type(config)
    for name, hint, _ in _identifying(config_type):
        value = getattr(config, name)
        if type(value) is hint and (hint not in (int, float) or abs(value) <= _LARGEST[hint]):
            continue  # thousands of trials are checked in a plan, and almost all of them are right
        try:
            value = _coerce(value, hint)
            if any(abs(each) > _LARGEST[type(each)] for each in _numbers(value)):
                found.append(f"{name} {shown(value)} is too large: use a smaller number")
        except TypeError as error:
            found.append(f"{name} {shown(value)} {error}: write one")
    return found


def _numbers(value: Any) -> Iterator[int | float]:
    """Yield the numbers in a setting."""
    for each in value if isinstance(value, tuple) else (value,):
        if type(each) in _LARGEST:
            yield each


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _coerce(value: Any, hint: Any) -> Any:
    """Return the value in its declared type, if that loses nothing; values of other types are returned unchanged."""
    if type(value) is hint and value == value:  # NaN is not equal to itself
        return value
    if isinstance(hint, types.UnionType):
        return None if value is None else _coerce(value, next(arm for arm in hint.__args__ if arm is not type(None)))
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, (list, tuple)):
            raise TypeError("is not a list")
        return tuple(_coerce(item, hint.__args__[0]) for item in value)
    if hint not in _MISMATCH or (hint is str and isinstance(value, str)):
        return value
    if hint in (int, float) and not isinstance(value, (bool, str)):
        with contextlib.suppress(TypeError, ValueError, ArithmeticError):
            if (number := hint(value)) == value:
                return number
    raise TypeError(_MISMATCH[hint])
