"""The text of a sweep file and of the files that it imports, which is hashed, stored and sent to workers."""

import ast
import hashlib
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orch.core.errors import DamagedFile, InvalidCode, InvalidSettings
from orch.core.reading import read_text
from orch.tasks.notation.automaton_file import SUFFIXES as TABLE_SUFFIXES
from orch.tasks.notation.automaton_file import read_file

SUFFIX = ".py"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


KeptRevision = tuple[str, str, int]
"""The kind ("model" or "task") and name of a class, and the revision of earlier code whose results count for it."""


@dataclass(frozen=True, slots=True)
class UserCode:
    """The texts of a sweep file, of those that it imports, and of the tables of automata that they name.

    Equal texts are equal codes, wherever they were read.
    """

    files: tuple[tuple[str, str], ...]
    """Name and text of each file; the sweep itself comes first."""
    kept: tuple[KeptRevision, ...] = ()
    """Revisions that its models and tasks have instead of their own, because the user decided so: see `kept`."""

    @classmethod
    def read(cls, path: str | Path) -> "UserCode":
        """Read a file and all files that it or they import with a dot, as in `from .network import Network`.

        Tables that they name, as in `orch.automaton("table.csv")`, are read too.
        """
        path = Path(path)
        if not _NAME.fullmatch(path.stem):
            raise InvalidCode([f"{path.name} is no name for a sweep: use letters, digits, _ and -, a letter first"])
        files: dict[str, str] = {}
        problems: list[str] = []
        pending = [(path.name, "")]
        while pending:
            name, importer = pending.pop(0)
            if name not in files:
                try:
                    if name.lower().endswith(TABLE_SUFFIXES):
                        files[name] = _table(path.parent / name, name, importer)
                        continue
                    files[name] = _text(path.parent / name, importer)
                    pending += [(f"{module}{SUFFIX}", place) for module, place in _siblings(path.parent, name, files)]
                    pending += [(table, f"{name}, line {line}:") for table, line in _tables(files[name])]
                except InvalidSettings as error:
                    problems += error.problems
        if problems:
            raise InvalidCode(problems)
        return cls(tuple(files.items()))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "UserCode":
        kept = tuple((kind, name, revision) for kind, name, revision in values.get("kept", ()))
        if not values["files"]:
            raise DamagedFile("recorded code without files cannot be run: restore it, or run orch sweep with its file")
        return cls(tuple((name, text) for name, text in values["files"]), kept)

    def to_dict(self) -> dict[str, Any]:
        kept = {"kept": [list(each) for each in self.kept]} if self.kept else {}
        return {"files": [list(file) for file in self.files]} | kept

    @property
    def python_files(self) -> dict[str, str]:
        """Name and text of each file of code, without tables."""
        return {name: text for name, text in self.files if name.endswith(SUFFIX)}

    @property
    def file(self) -> str:
        return self.files[0][0]

    @property
    def name(self) -> str:
        """The sweep's name, derived from the file's as for built-in sweeps."""
        return self.file.removesuffix(SUFFIX).replace("_", "-")

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.to_dict()).encode()).hexdigest()[:16]


def _text(path: Path, importer: str) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        where = (
            f"{importer} imports {path.name}, which is not in its folder" if importer else f"there is no file {path}"
        )
        raise InvalidCode([f"{where}: check the name and the folder"]) from None
    except (OSError, ValueError) as error:
        raise InvalidCode([f"{path} cannot be read as text ({error}): check the file"]) from None


def _table(path: Path, name: str, place: str) -> str:
    """Return the text of a table that a call of `orch.automaton` names at this place."""
    if not path.exists():
        beside = "" if Path(name).is_absolute() else f", looked for beside {place.partition(',')[0]}"
        raise InvalidCode([f"{place} there is no file {path}{beside}: check the name and the folder"])
    try:
        return read_file(path)
    except InvalidSettings as error:
        raise InvalidCode([f"{place} {problem}" for problem in error.problems]) from None


def _siblings(folder: Path, name: str, files: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the modules of its folder that a file imports, each with the place. Other local imports are errors."""
    try:
        tree = ast.parse(files[name])
    except SyntaxError as error:
        raise InvalidCode([f"{name}, line {error.lineno}: {error.msg}: fix it"]) from None
    except ValueError as error:
        raise InvalidCode([f"{name}: {error}: fix it"]) from None
    except (RecursionError, MemoryError):  # which Python's parser also raises when its stack is full
        raise InvalidCode([f"{name} is nested too deeply for Python to read: simplify it"]) from None
    problems = []
    for module, line in imports(tree, level=0):
        beside = folder / f"{module}{SUFFIX}"
        if beside.exists() and comes_from(module, beside):
            problems.append(
                f"{name}, line {line}: {beside.name} would not be sent to the workers: import it with a dot,"
                f" as in from .{module} import …"
            )
    for _, line in imports(tree, level=2):
        problems.append(f"{name}, line {line}: only files of the same folder are sent to the workers: move it there")
    if problems:
        raise InvalidCode(problems)
    return [(module, f"{name}, line {line}:") for module, line in imports(tree, level=1)]


def _tables(text: str) -> Iterator[tuple[str, int]]:
    """Yield the files that calls of `orch.automaton` name, each with the line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("orch.automaton", "automaton"):
            for argument in (*node.args, *(each.value for each in node.keywords)):
                name = argument.value if isinstance(argument, ast.Constant) else None
                if isinstance(name, str) and name.lower().endswith(TABLE_SUFFIXES):
                    yield name, argument.lineno


def imports(tree: ast.AST, level: int) -> Iterator[tuple[str, int]]:
    """Yield the first names of what is imported from `level` folders up (0: from anywhere), each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and level == 0:
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and min(node.level, 2) == level:
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from ((name.split(".")[0], node.lineno) for name in names)


def comes_from(module: str, path: Path) -> bool:
    """Return whether importing a module by its plain name would load this file, or fail."""
    spec = importlib.util.find_spec(module)
    return spec is None or (spec.origin is not None and Path(spec.origin).resolve() == path.resolve())
