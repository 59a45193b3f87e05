"""Checks of a user's file, models and tasks. One error lists everything that is missing, when the file is read."""

import ast
import dataclasses
import re
import types
import typing
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from orch.core.settings import field_types
from orch.models import ModelConfig
from orch.tasks import Task
from orch.usercode.code import UserCode, comes_from, imports

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NEEDED: dict[type, tuple[str, ...]] = {
    ModelConfig: ("network",),
    Task: ("slots", "initial", "step", "target"),
}
_PLAIN = (int, float, bool, str)


_OLD_NAMES = {"orchestrator": "orch.…", "models": "orch.models", "tasks": "orch.tasks", "analysis": "orch.analysis"}


def import_problems(code: UserCode) -> list[str]:
    """Return a sentence for every import of a part of orch by the name of its folder, which is not an import name."""
    package = Path(__file__).parents[1]
    found = []
    for file, text in code.python_files.items():
        for module, line in imports(ast.parse(text), level=0):
            folder = package if module == "orchestrator" else package / module
            if module in _OLD_NAMES and comes_from(module, folder / "__init__.py"):
                found.append(
                    f"{file}, line {line}: {module} is a part of orch: write from {_OLD_NAMES[module]} import …"
                )
    return found


def sweep_problems(sweep: ModuleType, named: Sequence[type[Any]]) -> list[str]:
    """Return what is missing in a file, and which of its models and tasks have the same name."""
    names = Counter((issubclass(each, Task), each.name) for each in named)
    found = [f"two of its classes are called {name}: rename one" for (_, name), count in names.items() if count > 1]
    if not isinstance(getattr(sweep, "TITLE", ""), str):
        found.append('its TITLE is not a text: write it like TITLE = "My models on parity"')
    if not callable(getattr(sweep, "cells", None)):
        found.append(
            "it asks for no trials: add cells = orch.grid(models=[…], tasks=[…]), or a function cells(scale, results)"
        )
    return found


def problems(config_type: type[Any]) -> list[str]:
    """Return why a class cannot be a model or a task: for each problem, a sentence that names the remedy."""
    base = ModelConfig if issubclass(config_type, ModelConfig) else Task
    word = "model" if base is ModelConfig else "task"
    called = f"{word} {config_type.name}"
    if not isinstance(config_type.name, str) or not _NAME.fullmatch(config_type.name):
        return [f"{word} {config_type.name!r} is no name: use small letters, digits and _, a letter first"]
    if "__dataclass_params__" not in vars(config_type):
        return [f"{called} is no dataclass: put @dataclass(frozen=True, kw_only=True, slots=True) above its class"]
    found = [
        f"{called} has no {method}: define it as {base.__name__} describes"
        for method in _NEEDED[base]
        if getattr(config_type, method) is getattr(base, method)
    ]
    if base is ModelConfig and not isinstance(getattr(config_type, "about", None), str):
        found.append(f"{called} has no description: add about = and a few words")
    if "revision" in vars(config_type):
        found.append(f"{called} has a revision: leave it out, the hash of its source is used")
    found += [f"{called} {problem}" for problem in _setting_problems(config_type)]
    return found


def _setting_problems(config_type: type[Any]) -> list[str]:
    found = []
    for field in dataclasses.fields(config_type):
        if not _NAME.fullmatch(field.name):
            found.append(f"has a setting {field.name}: use small letters, digits and _, a letter first")
        if field.default is dataclasses.MISSING:
            found.append(f"has a setting {field.name} without a default: use setting(default, description)")
        if not _is_plain(field_types(config_type)[field.name]):
            found.append(f"has a setting {field.name} that is not plain: use int, float, bool, str or a tuple of one")
    return found


def _is_plain(hint: Any) -> bool:
    if isinstance(hint, types.UnionType):
        arms = [arm for arm in hint.__args__ if arm is not type(None)]
        return len(arms) == 1 and _is_plain(arms[0])
    if typing.get_origin(hint) is tuple:
        return len(hint.__args__) == 2 and hint.__args__[0] in _PLAIN and hint.__args__[1] is Ellipsis
    return hint in _PLAIN
