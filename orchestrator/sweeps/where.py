"""Conditions on trials: `model=bilinear,factored`, `modulus!=2`, `learning_rate=1e-3,seed=0`.

They narrow a sweep, and select finished trials (`orch.store.matching`), even if their code is missing.
"""

import math
import re
import typing
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orch.core.errors import InvalidSettings, OrchError, UnknownName
from orch.core.settings import field_types
from orch.models.bilinear_family.config import ADDITIVE, NORMALISATIONS
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.selection import NOT_KNOWN
from orch.sweeps.trial import Trial

ALIASES = {"seed": "init_seed"}
_CONDITION = re.compile(r"\s*([\w-]+)\s*(!?=)\s*(.*?)\s*")
_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_CHOICES: dict[str, Collection[str]] = {
    "additive": ADDITIVE,
    "train_normalisation": NORMALISATIONS,
    "eval_normalisation": NORMALISATIONS,
}
_ABSENT = object()

Settings = Mapping[str, Any]
"""The settings of a trial, of its task and of its model, in one mapping."""


@dataclass(frozen=True, slots=True)
class Where:
    """A trial must have one of the values of each field in `equal`, and none of those in `unequal`."""

    equal: Mapping[str, frozenset[Any]]
    unequal: Mapping[str, frozenset[Any]]

    def split(self, names: Collection[str]) -> "tuple[Where, Where]":
        """Return the conditions on all other fields, and those on fields of these names."""
        parts = []
        for named in (False, True):
            equal, unequal = (
                {name: values for name, values in each.items() if (name in names) == named}
                for each in (self.equal, self.unequal)
            )
            parts.append(Where(equal, unequal))
        return parts[0], parts[1]

    def matches(self, trial: Trial | Settings) -> bool:
        """Return whether a trial meets the conditions.

        A trial that lacks a field has none of its values. One that waits for its learning rate may have any.
        """
        for name, values in self.equal.items():
            value = _value(trial, name)
            if value not in values and (name, value) != ("learning_rate", NOT_KNOWN):
                return False
        return all(_value(trial, name) not in values for name, values in self.unequal.items())


@dataclass(frozen=True, slots=True)
class Known:
    """The settings that conditions may name, and their values where there are only a few."""

    fields: Mapping[str, Any]
    """The type of every setting that a trial can have."""
    choices: Mapping[str, Collection[str]]
    """All values of those settings that have only a few."""
    made_tasks: Collection[str] = ()
    """Names of tasks that a user's file makes, which are no values of `task`."""

    @classmethod
    def of(cls, definitions: Definitions) -> "Known":
        """Return the settings of all these models and tasks and of the trial itself."""
        owners: tuple[type, ...] = (Trial, *definitions.tasks.values(), *definitions.models.values())
        fields = {name: hint for owner in owners for name, hint in field_types(owner).items()}
        # A user's setting may have the name of a built-in one and other values.
        user_fields = {name for owner in definitions.user_types for name in field_types(owner)}
        choices = {name: values for name, values in _CHOICES.items() if name not in user_fields}
        choices |= {"task": definitions.tasks.keys(), "model": definitions.models.keys()}
        return cls(fields | {"task": str, "model": str}, choices, definitions.made_tasks.keys())


BUILT_IN_SETTINGS = Known.of(BUILT_IN_DEFINITIONS)


def parse_where(conditions: Iterable[str], known: Known = BUILT_IN_SETTINGS) -> Where:
    """Parse conditions. All fields must match, each with one of the values that are given for it.

    Within a text, a comma separates the values of a condition, or conditions if a `=` follows.
    One error lists everything that cannot be understood.
    """
    found: dict[str, dict[str, set[Any]]] = {"=": {}, "!=": {}}
    problems: list[str] = []
    for written, sign, texts in (condition for text in conditions for condition in _split(text)):
        try:
            name = _field(written, known)
            found[sign].setdefault(name, set()).update(_parse(name, text, known) for text in texts)
        except OrchError as error:
            problems += str(error).splitlines()
    if problems:
        raise InvalidSettings(problems)
    equal, unequal = ({name: frozenset(values) for name, values in found[sign].items()} for sign in ("=", "!="))
    return Where(equal, unequal)


def _split(text: str) -> list[tuple[str, str, list[str]]]:
    """Return the conditions in one text as they are written: field, sign, values."""
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


def _field(name: str, known: Known) -> str:
    name = name.replace("-", "_")
    name = ALIASES.get(name, name)
    if name not in known.fields:
        raise UnknownName("setting", name, [*known.fields, *ALIASES])
    if typing.get_origin(known.fields[name]) is tuple:
        raise InvalidSettings([f"{name} is a list, which --where cannot compare: choose by another setting"])
    return name


def _parse(name: str, text: str, known: Known) -> Any:
    hint = known.fields[name]
    if name == "task" and text in known.made_tasks:
        raise InvalidSettings([f"{text} is what a task of your file is called: write called={text}"])
    if name in known.choices and text not in known.choices[name]:
        raise UnknownName(name, text, known.choices[name])
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


def _value(trial: Trial | Settings, name: str) -> Any:
    if not isinstance(trial, Trial):
        return trial.get(name, _ABSENT)
    if name in ("task", "model"):
        return getattr(trial, name).name
    for owner in (trial, trial.task, trial.model):
        if name in field_types(type(owner)):
            return getattr(owner, name)
    return _ABSENT
