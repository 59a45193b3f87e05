"""Columns for the settings that only tasks and models of the user's own have, beside those of the built-in ones.

A store that has them is read without their code too: what a version does not know is kept as it is.
"""

import dataclasses
from collections.abc import Iterable

import pyarrow as pa

from orch.core.settings import describe, field_types
from orch.models import ModelConfig
from orch.store.columns import MODEL_SETTINGS, SCHEMAS, SETTINGS, TASK_SETTINGS, TRIALS, arrow_type
from orch.tasks import Task

OwnType = type[Task] | type[ModelConfig]

_KNOWN = {each.name for each in TRIALS} | {"seed"}
_own: dict[str, pa.Field] = {}


def include(own: Iterable[OwnType]) -> None:
    """From now on `trials` has the settings of these, in place of those that were included before."""
    _own.clear()
    for kind in own:
        for field in dataclasses.fields(kind):
            if field.name not in _KNOWN:
                kind_of = arrow_type(field_types(kind)[field.name])
                _own.setdefault(field.name, pa.field(field.name, kind_of, metadata={"description": describe(field)}))
    SCHEMAS["trials"] = pa.schema([*TRIALS, *_own.values()])


def setting_columns() -> list[pa.Field]:
    """Every setting of every task and model in use, and of the trial itself."""
    return [*SETTINGS, *_own.values()]


def clashes(own: Iterable[OwnType]) -> list[str]:
    """Settings that cannot be columns beside the others, each as a sentence that names the remedy."""
    problems = []
    owners: dict[type, dict[str, tuple[pa.DataType, str]]] = {
        Task: {each.name: (each.type, "the built-in tasks") for each in TASK_SETTINGS},
        ModelConfig: {each.name: (each.type, "the built-in models") for each in MODEL_SETTINGS},
    }
    for kind in own:
        base, other = (Task, ModelConfig) if issubclass(kind, Task) else (ModelConfig, Task)
        for name, hint in field_types(kind).items():
            if name in owners[other] or (name in _KNOWN and name not in owners[base]):
                problems.append(f"the setting {name} of {kind.name} has the name of another column: rename it")
                continue
            expected, owner = owners[base].setdefault(name, (arrow_type(hint), kind.name))
            if expected != arrow_type(hint):
                problems.append(
                    f"the setting {name} of {kind.name} has another type than that of {owner}: rename it, or give it"
                    " the same type"
                )
    return problems
