"""Clashes: names in a user's files that other sweeps, models, tasks or columns of the store already have."""

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from orch.core.settings import field_types
from orch.models import ModelConfig
from orch.store.columns import MODEL_SETTINGS, TASK_SETTINGS, TRIALS, arrow_type
from orch.sweeps.catalogue import BUILT_IN
from orch.sweeps.definitions import PartType
from orch.sweeps.registry import ALL
from orch.tasks import Task
from orch.usercode.loading import LoadedCode

_COLUMNS = {column.name for column in TRIALS} | {"seed"}


def name_clashes(files: Iterable[LoadedCode]) -> list[str]:
    """Return a sentence for every name that a built-in thing or another file has, with the remedy."""
    built_in: Mapping[str, set[str]] = {
        "sweep": {*BUILT_IN.sweeps, ALL},
        "model": set(BUILT_IN.models),
        "task": set(BUILT_IN.tasks),
    }
    problems = []
    seen: dict[tuple[str, str], tuple[str, str | int]] = {}
    for loaded in files:
        file = loaded.code.file
        for kind, name, version in _named(loaded):
            other, other_version = seen.setdefault((kind, name), (file, version))
            if name in built_in[kind]:
                remedy = "rename the file" if kind == "sweep" else "give it another name"
                problems.append(f"{file}: there is a built-in {kind} {name}: {remedy}")
            elif version != other_version:
                problems.append(f"{kind} {name} is defined by both {other} and {file}: rename one of them")
    return problems


def _named(loaded: LoadedCode) -> Iterator[tuple[str, str, str | int]]:
    """Yield the kind, name and version of what a file defines. Files may share the one that defines a model."""
    yield "sweep", loaded.code.name, loaded.code.digest
    yield from (("task", name, task.revision) for name, task in loaded.tasks.items())
    yield from (("model", name, model.revision) for name, model in loaded.models.items())


def column_clashes(user_types: Iterable[PartType]) -> list[str]:
    """Return a sentence for every setting that clashes with another column, with the remedy."""
    problems = []
    owners: dict[type, dict[str, tuple[pa.DataType, str]]] = {
        Task: {column.name: (column.type, "the built-in tasks") for column in TASK_SETTINGS},
        ModelConfig: {column.name: (column.type, "the built-in models") for column in MODEL_SETTINGS},
    }
    for part in user_types:
        base, other = (Task, ModelConfig) if issubclass(part, Task) else (ModelConfig, Task)
        for name, hint in field_types(part).items():
            if name in owners[other] or (name in _COLUMNS and name not in owners[base]):
                problems.append(f"the setting {name} of {part.name} has the name of another column: rename it")
                continue
            expected, owner = owners[base].setdefault(name, (arrow_type(hint), part.name))
            if expected != arrow_type(hint):
                problems.append(
                    f"the setting {name} of {part.name} has another type than that of {owner}: rename it, or give it"
                    " the same type"
                )
    return problems
