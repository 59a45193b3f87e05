"""State-tracking tasks, one file each: a task is a finite fold over input symbols.

A task's file defines one frozen dataclass derived from `Task`, whose name is the name of the file.
Only `sampling` imports torch; it turns any fold into batches on a device. `notation` reads what describes a task: names
of groups, tables of automata, regular expressions. `algebra` computes what theory says about any task.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from orch.tasks.task import Task

_NOT_TASKS = {"from_function", "task", "sampling"}


def _discover() -> Mapping[str, type[Task]]:
    registry = {}
    for module in pkgutil.iter_modules(__path__):
        if not module.ispkg and module.name not in _NOT_TASKS:
            loaded = importlib.import_module(f"{__name__}.{module.name}")
            for value in vars(loaded).values():
                if isinstance(value, type) and issubclass(value, Task) and value.__module__ == loaded.__name__:
                    registry[value.name] = value
    return MappingProxyType(registry)


REGISTRY = _discover()

__all__ = ["REGISTRY", "Task"]
