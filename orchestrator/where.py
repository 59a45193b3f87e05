"""Conditions that narrow a sweep: `model=bilinear,factored`, `modulus!=2`, `learning_rate=1e-3,seed=0`."""

import functools
import math
import re
import typing
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import models
import tasks
from models.config import ADDITIVE, NORMALISATIONS
from orchestrator.errors import InvalidSettings, OrchError, UnknownName
from orchestrator.selection import NOT_KNOWN
from orchestrator.settings import field_types
from orchestrator.trial import Trial

ALIASES = {"seed": "init_seed"}
_CONDITION = re.compile(r"\s*([\w-]+)\s*(!?=)\s*(.*?)\s*")
_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_CHOICES: dict[str, Collection[str]] = {
    "task": tasks.REGISTRY,
    "model": models.REGISTRY,
    "additive": ADDITIVE,
    "train_normalisation": NORMALISATIONS,
    "eval_normalisation": NORMALISATIONS,
}
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Where:
    """One of the values of each field in `equal`, and none of those in `unequal`."""

    equal: Mapping[str, frozenset[Any]]
    unequal: Mapping[str, frozenset[Any]]

    def matches(self, trial: Trial) -> bool:
        """A trial that lacks a field has none of its values. One that waits for its learning rate may have any."""
        for name, values in self.equal.items():
            if _value(trial, name) not in values and not _may_be_anything(trial, name):
                return False
        return all(_value(trial, name) not in values for name, values in self.unequal.items())


def parse_where(conditions: Iterable[str]) -> Where:
    """Conditions on different fields must all hold; of several values for one field, one must.

    In one text, a comma goes on with the values of a condition or, if a `=` follows, begins another condition.
    All that cannot be understood is reported at once.
    """
    found: dict[str, dict[str, set[Any]]] = {"=": {}, "!=": {}}
    problems: list[str] = []
    for written, sign, texts in (condition for text in conditions for condition in _split(text)):
        try:
            name = _field(written)
            found[sign].setdefault(name, set()).update(_parse(name, text) for text in texts)
        except OrchError as error:
            problems += str(error).splitlines()
    if problems:
        raise InvalidSettings(problems)
    equal, unequal = ({name: frozenset(values) for name, values in found[sign].items()} for sign in ("=", "!="))
    return Where(equal, unequal)


def _split(text: str) -> list[tuple[str, str, list[str]]]:
    """The conditions in one text, as written: field, sign, values."""
    found: list[tuple[str, str, list[str]]] = []
    for piece in text.split(","):
        if match := _CONDITION.fullmatch(piece):
            name, sign, value = match.groups()
            found.append((name, sign, [value]))
        elif found:
            found[-1][2].append(piece.strip())
        else:
            raise InvalidSettings([f"--where {text!r} names no setting: write it like model=bilinear,factored"])
    return found


@functools.cache
def _fields() -> dict[str, Any]:
    """The type of every setting that any trial can have."""
    owners: tuple[type, ...] = (Trial, *tasks.REGISTRY.values(), *models.REGISTRY.values())
    return {name: hint for owner in owners for name, hint in field_types(owner).items()} | {"task": str, "model": str}


def _field(name: str) -> str:
    name = name.replace("-", "_")
    name = ALIASES.get(name, name)
    if name not in _fields():
        raise UnknownName("setting", name, [*_fields(), *ALIASES])
    if typing.get_origin(_fields()[name]) is tuple:
        raise InvalidSettings([f"{name} is a list, which --where cannot compare: choose by another setting"])
    return name


def _parse(name: str, text: str) -> Any:
    hint = _fields()[name]
    if name in _CHOICES and text not in _CHOICES[name]:
        raise UnknownName(name, text, _CHOICES[name])
    if hint is bool and text.lower() not in _WORDS:
        raise InvalidSettings([f"{name} {text!r} is not true or false: write {name}=true or {name}=false"])
    if hint is bool:
        return _WORDS[text.lower()]
    if hint in (int, float):
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or (hint is int and not number.is_integer()):
            kind, example = ("whole number", 3) if hint is int else ("number", 1e-3)
            raise InvalidSettings([f"{name} {text!r} is not a {kind}: write it like {name}={example}"])
        return hint(number)
    return text


def _value(trial: Trial, name: str) -> Any:
    if name in ("task", "model"):
        return getattr(trial, name).name
    for owner in (trial, trial.task, trial.model):
        if name in field_types(type(owner)):
            return getattr(owner, name)
    return _ABSENT


def _may_be_anything(trial: Trial, name: str) -> bool:
    return name == "learning_rate" and trial.learning_rate == NOT_KNOWN
