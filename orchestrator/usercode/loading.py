"""Running the text of own code: as a package of its own, so that versions of one file can live side by side."""

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from orch.core.errors import InvalidCode, OrchError
from orch.models import ModelConfig
from orch.tasks import Task
from orch.usercode import checks
from orch.usercode.code import SUFFIX, UserCode
from orch.usercode.revision import revision

_PREFIX = "orch_own_"
_CODES: dict[str, UserCode] = {}
"""By package: all that was ever run in this process."""


@dataclass(frozen=True)
class Loaded:
    """What a file of the user's defines."""

    code: UserCode
    sweep: ModuleType
    models: dict[str, type[ModelConfig]]
    tasks: dict[str, type[Task]]


@functools.cache
def load(code: UserCode) -> Loaded:
    """Run it, once in a process; an error says in which file and line it went wrong."""
    package = f"{_PREFIX}{code.digest}"
    _CODES[package] = code
    with explained(code):
        sweep = importlib.import_module(f"{package}.{code.file.removesuffix(SUFFIX)}")
    found = [
        value
        for value in vars(sweep).values()
        if isinstance(value, type) and issubclass(value, (ModelConfig, Task)) and code_of(value) is code
    ]
    # A class without a name of its own is there for others to derive from.
    named = list(dict.fromkeys(value for value in found if "name" in vars(value)))
    problems = checks.sweep_problems(sweep, named)
    for value in named:
        with explained(code):
            problems += checks.problems(value)
    if problems:
        raise InvalidCode([f"{code.file}: {problem}" for problem in problems])
    for value in named:
        value.revision = revision(code, value.__module__.partition(".")[2] + SUFFIX)
    return Loaded(
        code,
        sweep,
        {value.name: value for value in named if issubclass(value, ModelConfig)},
        {value.name: value for value in named if issubclass(value, Task)},
    )


def code_of(kind: type) -> UserCode | None:
    """The code that defines a class; nothing for one that is not the user's."""
    return _CODES.get(kind.__module__.partition(".")[0])


@contextmanager
def explained(code: UserCode) -> Iterator[None]:
    """What goes wrong in the user's code as sentences that name its file and line."""
    try:
        yield
    except InvalidCode:
        raise
    except (Exception, SystemExit) as error:
        folder = _folder(code)
        frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename.startswith(folder)]
        place = f"{frames[-1].filename.removeprefix(folder)}, line {frames[-1].lineno}" if frames else code.file
        if isinstance(error, OrchError):
            raise InvalidCode([f"{place}: {line}" for line in str(error).splitlines()]) from error
        reason = " ".join(str(error).split())
        raise InvalidCode([f"{place}: {type(error).__name__}: {reason}: mend it"]) from error


def _folder(code: UserCode) -> str:
    """Stands before the names of files in tracebacks. There is no such folder: lines are shown as they were run."""
    return f"own-{code.digest}/"


class _Texts(importlib.abc.MetaPathFinder, importlib.abc.ExecutionLoader):
    """Imports from texts in memory."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, module = fullname.partition(".")
        code = _CODES.get(package)
        if code is None or (module and code.text(module + SUFFIX) is None):
            return None
        spec = importlib.machinery.ModuleSpec(
            fullname, self, origin=self.get_filename(fullname), is_package=self.is_package(fullname)
        )
        spec.has_location = True
        return spec

    def is_package(self, fullname: str) -> bool:
        return "." not in fullname

    def get_filename(self, fullname: str) -> str:
        package, _, module = fullname.partition(".")
        return f"{_folder(_CODES[package])}{module or '__init__'}{SUFFIX}"

    def get_source(self, fullname: str) -> Any:
        package, _, module = fullname.partition(".")
        return _CODES[package].text(module + SUFFIX) if module else ""


sys.meta_path.insert(0, _Texts())
