"""Running the text of a user's files as a separate package, so that versions of a file can be loaded together."""

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from orch.core.errors import InvalidCode, OrchError
from orch.core.prints import prints_are_messages
from orch.core.settings import from_dict
from orch.models import ModelConfig
from orch.sweeps.grid import Grid
from orch.sweeps.trial import Trial
from orch.tasks import REGISTRY, Task
from orch.usercode import checks
from orch.usercode.code import SUFFIX, UserCode
from orch.usercode.revision import Binding, revision

PREFIX = "orch_user_"
CODE_FOLDER = f"/{PREFIX}code/"
"""The folder of all users' code in tracebacks. It does not exist on disk: lines are shown as they were run."""


@dataclass(frozen=True)
class LoadedCode:
    """The sweep, models and tasks that a user's file defines."""

    code: UserCode
    sweep: ModuleType
    models: dict[str, type[ModelConfig]]
    tasks: dict[str, type[Task]]
    made_tasks: tuple[Task, ...] = ()
    """Tasks that the file makes of classes, in its grid or at the top level."""


@functools.cache
def load(code: UserCode) -> LoadedCode:
    """Run the code, once in a process. An error names the file and the line."""
    if problems := checks.import_problems(code):
        raise InvalidCode(problems)
    with explained(code), surroundings_kept(), prints_are_messages():
        sweep = importlib.import_module(f"{_make_package(code)}.{code.file.removesuffix(SUFFIX)}")
    cells = vars(sweep).get("cells")
    in_grid = cells.classes if isinstance(cells, Grid) else []
    found = [
        value
        for value in (*vars(sweep).values(), *in_grid)
        if isinstance(value, type) and issubclass(value, (ModelConfig, Task)) and code_of(value) == code
    ]
    # A class that does not define `name` is a base class.
    named = list(dict.fromkeys(value for value in found if "name" in vars(value)))
    problems = checks.sweep_problems(sweep, named)
    for value in named:
        with explained(code):
            problems += checks.problems(value)
    if problems:
        raise InvalidCode([f"{code.file}: {problem}" for problem in problems])
    kept = {(kind, name): number for kind, name, number in code.kept}
    for value in named:
        kind = "model" if issubclass(value, ModelConfig) else "task"
        value.revision = kept.get((kind, value.name)) or revision(code, bindings_of(value))
    return LoadedCode(
        code,
        sweep,
        {value.name: value for value in named if issubclass(value, ModelConfig)},
        {value.name: value for value in named if issubclass(value, Task)},
        tuple(_made_tasks(sweep)),
    )


def run_all_files(code: UserCode) -> None:
    """Load the code, and also its files that are imported only when a network is made."""
    load(code)
    for name in code.python_files:
        importlib.import_module(f"{_make_package(code)}.{name.removesuffix(SUFFIX)}")


def _made_tasks(sweep: ModuleType) -> Iterator[Task]:
    """Yield the tasks among a file's values, in its lists and in its grid."""
    for value in vars(sweep).values():
        listed = value.tasks if isinstance(value, Grid) else value if isinstance(value, (list, tuple)) else [value]
        for each in listed:
            if isinstance(each, Task):
                yield each
            elif isinstance(each, Mapping) and isinstance(value, Grid) and each["name"] in REGISTRY:
                # What is wrong with its settings is reported when the sweep is planned.
                with suppress(OrchError):
                    yield from_dict(REGISTRY[each["name"]], {key: each[key] for key in each if key != "name"})


def bindings_of(defined: type) -> list[Binding]:
    """Return the names that stand for a user's model or task in its files, each with the file.

    A class that was made of a module or a function (`orch.model`, `orch.task`) also has the names of that.
    """
    package = defined.__module__.partition(".")[0]
    found = []
    for value in (defined, getattr(defined, "wrapped", None)):
        module = getattr(value, "__module__", None) or ""
        if module.partition(".")[0] == package:
            found.append((module, getattr(value, "__name__", "")))
        for name, loaded in list(sys.modules.items()):
            if value is not None and name.startswith(f"{package}.") and loaded is not None:
                found += [(name, bound) for bound, each in vars(loaded).items() if each is value]
    return [(module.partition(".")[2] + SUFFIX, name) for module, name in dict.fromkeys(found)]


def codes_defining(trials: Iterable[Trial]) -> list[UserCode]:
    """Return the user's code that defines the models and tasks of these trials; nothing for built-in ones."""
    types = dict.fromkeys(type(part) for trial in trials for part in (trial.task, trial.model))
    return list(dict.fromkeys(code for code in map(code_of, types) if code is not None))


def code_of(defined: type) -> UserCode | None:
    """Return the code that defines a class, an attribute of its package; None if the class is not a user's."""
    code = getattr(sys.modules.get(defined.__module__.partition(".")[0]), "user_code", None)
    return code if isinstance(code, UserCode) else None


@contextmanager
def explained(code: UserCode) -> Iterator[None]:
    """Raise whatever goes wrong in the user's code as sentences that name its file and line."""
    try:
        yield
    except InvalidCode:
        raise
    except (Exception, SystemExit) as error:
        folder = f"{_folder(code)}/"
        frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename.startswith(folder)]
        place = f"{frames[-1].filename.removeprefix(folder)}, line {frames[-1].lineno}" if frames else code.file
        if isinstance(error, OrchError):
            raise InvalidCode([f"{place}: {line}" for line in str(error).splitlines()]) from error
        reason = " ".join(str(error).split())
        remedy = _made_too_early(error) or "fix it"
        raise InvalidCode([f"{place}: {type(error).__name__}: {reason}: {remedy}"]) from error


def _made_too_early(error: BaseException) -> str | None:
    """Return the remedy if the file makes a network without its vocabulary, where it wants to give its settings."""
    found = re.match(r"(\w+)\.__init__\(\) missing \d+ required positional argument", str(error))
    frame = None if error.__traceback__ is None else list(traceback.walk_tb(error.__traceback__))[-1][0]
    if not found or frame is None or frame.f_code.co_name not in ("<module>", "cells", "<listcomp>"):
        return None
    name, torch = found[1], sys.modules.get("torch")
    made = frame.f_globals.get(name)
    if torch is None or not (isinstance(made, type) and issubclass(made, torch.nn.Module)):
        return None
    return f"write dict(name={name}, …) with its settings, because a network is made for the vocabulary of each task"


@contextmanager
def surroundings_kept() -> Iterator[None]:
    """Restore the environment and the current folder, which workers that are started later would inherit."""
    environment, folder = dict(os.environ), current_folder()
    try:
        yield
    finally:
        if os.environ != environment:
            for name in os.environ.keys() - environment.keys():
                del os.environ[name]
            os.environ.update(environment)
        if folder and current_folder() != folder:
            os.chdir(folder)


def current_folder() -> str:
    """Return the current folder; empty if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _folder(code: UserCode) -> str:
    return f"{CODE_FOLDER}{code.digest}"


def _make_package(code: UserCode) -> str:
    """Make the files importable as one package and return its name. Each is run when it is first imported.

    The package's search path is a folder that exists only as an entry of the import system's table of finders.
    """
    name = f"{PREFIX}{code.digest}"
    if name not in sys.modules:
        folder = _folder(code)
        sys.path_importer_cache[folder] = _TextFinder(code, folder)
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [folder]
        package = importlib.util.module_from_spec(spec)
        vars(package)["user_code"] = code
        sys.modules[name] = package
    return name


class _TextFinder(importlib.abc.PathEntryFinder):
    """Finds the files of a user's code in memory."""

    def __init__(self, code: UserCode, folder: str):
        self._texts, self._folder = code.python_files, folder
        self._data_files = {str(Path(folder) / name): text for name, text in code.files if name not in self._texts}

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        file = fullname.rpartition(".")[2] + SUFFIX
        if file not in self._texts:
            return None
        path = f"{self._folder}/{file}"
        spec = importlib.machinery.ModuleSpec(
            fullname, _TextLoader(path, self._texts[file], self._data_files), origin=path
        )
        spec.has_location = True
        return spec


class _TextLoader(importlib.abc.ExecutionLoader):
    """Runs one text, which tracebacks show by its path."""

    def __init__(self, path: str, text: str, data_files: dict[str, str]):
        self._path, self._text = path, text
        self.data_files = data_files
        """Texts of the tables that the code names, by their paths beside it."""

    def get_filename(self, fullname: str) -> str:
        return self._path

    def get_source(self, fullname: str) -> str:
        return self._text

    def is_package(self, fullname: str) -> bool:
        return False
