"""The code of live objects: classes and functions of a notebook or a script as the text of a sweep file.

The text has the definitions that the models and tasks of a grid use, directly or through each other: imports, helper
functions and classes, constants with their present values, and the grid. It travels to workers and into the store like
a file that somebody wrote.
"""

import builtins
import dataclasses
import inspect
import sys
from collections.abc import Iterable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from orch.core.errors import InvalidCode
from orch.models import ModelConfig
from orch.models.module_config import FACTS
from orch.sweeps.grid import Grid
from orch.tasks import Task
from orch.usercode.code import SUFFIX, UserCode
from orch.usercode.literals import literal
from orch.usercode.live_source import Definition, definition_of, imported_as, is_users, is_users_file
from orch.usercode.names_used import FUTURE, names_used


def live_code(name: str, title: str, made: Grid) -> UserCode:
    """Return the code of a sweep with this name, title and grid. One error lists everything that cannot travel."""
    collector = _Collector()
    models = [collector.expression(each) for each in made.models]
    tasks = [collector.expression(each) for each in made.tasks]
    if collector.problems:
        raise InvalidCode(list(dict.fromkeys(collector.problems)))
    settings = {"learning_rates": made.learning_rates, "seeds": made.seeds, "width": made.width} | made.settings
    given = [f"{key}={literal(value)}" for key, value in settings.items() if value is not None]
    lines = [f"models=[{', '.join(models)}]", f"tasks=[{', '.join(tasks)}]", *given]
    asked = "".join(f"        {line},\n" for line in lines)
    parts = [
        f"{literal(title)}",
        *([FUTURE] if collector.needs_future else []),
        "\n".join(["from orch.sweeps.grid import grid as orch_grid", *collector.imports]),
        *collector.definitions,
        f"def cells(scale, results):\n    return orch_grid(\n{asked}    )(scale, results)\n",
    ]
    return UserCode(((f"{name.replace('-', '_')}{SUFFIX}", "\n\n".join(parts)),))


class _Collector:
    """Collects what expressions use: imports, and definitions in an order in which they can be run."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.imports: dict[str, None] = {}
        self.definitions: list[str] = []
        self.needs_future = False
        self._known: dict[str, Any] = {}
        """The names that are defined or about to be, each with what it stands for."""

    def expression(self, part: Any) -> str:
        """Return an expression for a model or a task, and collect what it uses."""
        if isinstance(part, Mapping):
            return literal(part) or self._refuse(f"the settings of {part['name']} are not plain: use numbers and texts")
        if isinstance(part, type):
            return self._class(part)
        changed = {field.name for field in dataclasses.fields(part) if getattr(part, field.name) != field.default}
        if isinstance(part, Task) and not part.has_modulus:
            changed.discard("modulus")
        arguments = [f"{key}={literal(getattr(part, key))}" for key in sorted(changed)]
        return f"{self._class(type(part))}({', '.join(arguments)})"

    def _class(self, part: type) -> str:
        """Collect the class of a model or a task, and return its name."""
        if "wrapped" in vars(part):
            return self._made_class(part)
        name = f"{part.name}_config" if part.__name__ == "Config" else part.__name__  # type: ignore[attr-defined]
        self._collect(name, part, vars(sys.modules[part.__module__]))
        return name

    def _made_class(self, part: Any) -> str:
        """Collect a class that `orch.model` or `orch.task` made, as a decorator or by a call, and return its name."""
        wrapped = part.wrapped
        made_by = "model" if issubclass(part, ModelConfig) else "task"
        try:
            definition = definition_of(wrapped)
        except InvalidCode as error:
            return self._refuse(*error.problems)
        if any(each.rpartition(".")[2] == made_by for each in definition.decorators):
            if wrapped.__name__ not in self._known:
                self._known[wrapped.__name__] = part
                self._define(wrapped.__name__, wrapped, definition)
            return str(wrapped.__name__)
        name = f"{part.name}_{made_by}"
        if name not in self._known:
            self._known[name] = part
            inner = self._function(wrapped)
            if made_by == "model":
                self.imports["from orch.models.module_config import model as orch_model"] = None
                facts = {fact: literal(vars(part)[fact]) for fact in ("name", "about", *FACTS) if fact in vars(part)}
                self.problems += [
                    f"{fact} of {inner} is not plain: write @orch.model({fact}=…) above the class instead"
                    for fact, text in facts.items()
                    if text is None
                ]
                given = [f"{fact}={text}" for fact, text in facts.items()]
                self.definitions.append(f"{name} = orch_model({', '.join([inner, *given])})")
            else:
                sizes = {key: self._size(value) for key, value in part.made_with.items()} | {"name": repr(part.name)}
                arguments = ", ".join(f"{key}={text}" for key, text in sizes.items())
                self.imports["from orch.tasks.from_function import task as orch_task"] = None
                self.definitions.append(f"{name} = orch_task({arguments})({inner})")
        return name

    def _function(self, value: Any) -> str:
        """Collect a class or function by its own name."""
        self._collect(value.__name__, value, vars(sys.modules[value.__module__]))
        return str(value.__name__)

    def _size(self, value: Any) -> str:
        return self._function(value) if callable(value) else str(literal(value))

    def _collect(self, name: str, value: Any, namespace: Mapping[str, Any]) -> None:
        """Collect the definition of a name."""
        if name in self._known:
            other = self._known[name]
            if other is not value and (literal(value) is None or literal(other) != literal(value)):
                self._refuse(f"{name} means two things in the files that are used: rename one of them")
            return
        self._known[name] = value
        source = inspect.unwrap(value) if callable(value) else value
        if isinstance(value, ModuleType):
            self._import_module(name, value)
        elif isinstance(value, type) and "wrapped" in vars(value) and issubclass(value, (ModelConfig, Task)):
            del self._known[name]
            if (made := self._made_class(value)) != name:
                self._known[name] = value
                self.definitions.append(f"{name} = {made}")
        elif isinstance(source, (type, FunctionType)) and is_users(source):
            try:
                self._define(name, source, definition_of(source))
            except InvalidCode as error:
                self._refuse(*error.problems)
        elif (statement := imported_as(name, value, namespace)) is not None:
            self.imports[statement] = None
        elif (text := literal(value)) is not None:
            for module in ("numpy", "torch"):
                if f"{module}." in text:
                    self.imports[f"import {module}"] = None
            self.definitions.append(f"{name} = {text}")
        elif isinstance(value, (ModelConfig, Task)):
            self.definitions.append(f"{name} = {self.expression(value)}")
        else:
            kind = type(value).__name__
            article = "an" if kind[0].lower() in "aeiou" else "a"
            self._refuse(
                f"{name} is {article} {kind}, which cannot be sent to workers: make it inside the class or function"
                " that uses it, or use numbers, texts, and lists or dictionaries of these"
            )

    def _define(self, name: str, value: Any, definition: Definition) -> None:
        """Collect a class or function: first what must be defined before it, then itself, then what it calls."""
        namespace = vars(sys.modules[value.__module__])
        used = names_used(definition.text, definition.needs_future)
        self.needs_future |= definition.needs_future
        self._collect_all(used.at_once, value.__name__, namespace)
        known = [path for path in used.in_annotations if path.partition(".")[0] in namespace]
        self._collect_all(known, value.__name__, namespace)
        self.definitions.append(definition.text)
        if value.__name__ != name:
            self._known.setdefault(value.__name__, value)
            self.definitions.append(f"{name} = {value.__name__}")
        self._collect_all(used.later, value.__name__, namespace)

    def _collect_all(self, paths: Iterable[str], user: str, namespace: Mapping[str, Any]) -> None:
        """Collect the global names that a class or function uses; each may be followed by attributes."""
        for path in paths:
            name, _, attributes = path.partition(".")
            if name in namespace:
                if name != user:
                    self._collect(name, namespace[name], namespace)
                if isinstance(namespace[name], ModuleType):
                    self._import_submodules(namespace[name], attributes)
            elif not hasattr(builtins, name) and name not in ("__class__", user):
                self._refuse(f"{user} uses {name}, which is not defined: define it first")

    def _import_module(self, name: str, module: ModuleType) -> None:
        if is_users_file(module):
            self._refuse(
                f"{name} is a file of yours that would not be sent to the workers: import what you use from it by its"
                f" name, as in from {module.__name__} import …"
            )
        elif name == module.__name__:
            self.imports[f"import {name}"] = None
        else:
            self.imports[f"import {module.__name__} as {name}"] = None

    def _import_submodules(self, module: ModuleType, attributes: str) -> None:
        """Import the modules of an expression such as `concurrent.futures.Future`, which `import concurrent` lacks."""
        path = module.__name__
        for attribute in filter(None, attributes.split(".")):
            path = f"{path}.{attribute}"
            if path not in sys.modules:
                break
            self.imports[f"import {path}"] = None

    def _refuse(self, *problems: str) -> str:
        self.problems += problems
        return ""
