"""The text behind live objects: the definition of a class or function, and the import that gave a name."""

import ast
import inspect
import linecache
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from orch.core.errors import InvalidCode

_Node = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Definition:
    """The text of a class or function, with its decorators."""

    text: str
    decorators: tuple[str, ...]
    """The dotted name of each decorator, without its arguments."""
    needs_future: bool
    """Whether its annotations are not evaluated, by `from __future__ import annotations`."""


def definition_of(value: Any) -> Definition:
    """Return the definition of a class or function, or raise an error that names the problem and the remedy."""
    name = value.__qualname__
    if "<lambda>" in name:
        raise InvalidCode(["a lambda has no name by which workers could find it: write it as a function with def"])
    if "<locals>" in name:
        raise InvalidCode([f"{name.rpartition('.')[2]} is defined inside a function: move it to the top level"])
    kinds = (ast.ClassDef,) if isinstance(value, type) else (ast.FunctionDef, ast.AsyncFunctionDef)
    for file, line in _places(value):
        tree = _tree(file)
        nodes = [node for node in _statements(tree) if isinstance(node, kinds) and node.name == value.__name__]
        matching = [node for node in nodes if line is None or _first(node) <= line <= (node.end_lineno or 0)]
        if matching:
            node = matching[-1]
            text = textwrap.dedent("".join(linecache.getlines(file)[_first(node) - 1 : node.end_lineno]))
            called = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
            future = any(isinstance(each, ast.ImportFrom) and each.module == "__future__" for each in tree.body)
            return Definition(text.rstrip("\n"), tuple(map(ast.unparse, called)), future)
    raise InvalidCode(
        [
            f"the text of {name} is not known, because it was typed into a plain Python prompt or made by a program:"
            " define it in a notebook or a file"
        ]
    )


def is_users(value: Any) -> bool:
    """Return whether a class or function is defined in the notebook, the script or a file next to it."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    return module is not None and (module.__name__ == "__main__" or is_users_file(module))


def is_users_file(module: ModuleType) -> bool:
    """Return whether a module is a file in the folder of the script or in the current folder."""
    file = getattr(module, "__file__", None)
    if module.__name__ == "__main__" or "." in module.__name__ or file is None:
        return False
    main = getattr(sys.modules["__main__"], "__file__", None)
    folders = {Path.cwd().resolve(), *([Path(main).resolve().parent] if main else [])}
    return Path(file).resolve().parent in folders


def imported_as(name: str, value: Any, namespace: Mapping[str, Any]) -> str | None:
    """Return the import that gives a name this value, if the value is an attribute of an installed module."""
    own_name = getattr(value, "__qualname__", getattr(value, "__name__", None))
    places = [(getattr(value, "__module__", None), own_name), *_imports_of(name, namespace)]
    for module_name, attribute in places:
        module = sys.modules.get(module_name or "")
        installed = module is not None and module.__name__ != "__main__" and not is_users_file(module)
        if installed and attribute and getattr(module, attribute, None) is value:
            return f"from {module_name} import {attribute}{'' if attribute == name else f' as {name}'}"
    return None


def _imports_of(name: str, namespace: Mapping[str, Any]) -> list[tuple[str | None, str]]:
    """Return the module and attribute of every `from … import …` in the user's text that binds a name, last first."""
    found = []
    for file in [namespace["__file__"]] if namespace.get("__file__") else _cells():
        for node in ast.walk(_tree(file)):
            if isinstance(node, ast.ImportFrom) and not node.level:
                found += [(node.module, alias.name) for alias in node.names if (alias.asname or alias.name) == name]
    return found[::-1]


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements at the top level, also those under `if`, `try` and `with`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt):
            yield node
            if isinstance(node, (ast.If, ast.Try, ast.With)):
                yield from _statements(node)


def _first(node: _Node) -> int:
    return min(each.lineno for each in (node, *node.decorator_list))


def _places(value: Any) -> Iterable[tuple[str, int | None]]:
    """Yield the files that may have the text of a class or function, with a line of it where that is known.

    A class does not know its file, and a notebook's cells are not files that Python would look for it in. A method of
    the class does.
    """
    if not isinstance(value, type):
        yield value.__code__.co_filename, value.__code__.co_firstlineno
        return
    for attribute in vars(value).values():
        function = getattr(attribute, "fget", None) or getattr(attribute, "__func__", attribute)
        code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
        if (
            code is not None
            and code.co_qualname.startswith(f"{value.__qualname__}.")
            and linecache.getlines(code.co_filename)
        ):
            yield code.co_filename, code.co_firstlineno
            return
    file = getattr(sys.modules.get(value.__module__), "__file__", None)
    yield from ((each, None) for each in ([file] if file else reversed(_cells())))


def _cells() -> list[str]:
    """Return the names under which Python keeps the text of a notebook's cells, in the order in which they were run."""
    return [file for file in linecache.cache if "ipykernel_" in file or "ipython-input" in file]


def _tree(file: str) -> ast.Module:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ast.Module([], [])
