"""The global names that a definition uses, found in its text."""

import ast
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

from orch.usercode.syntax import names_in_texts

FUTURE = "from __future__ import annotations"


@dataclass(frozen=True, slots=True)
class NamesUsed:
    """The global names that a class or function uses, each followed by the attributes that are read from it."""

    at_once: list[str]
    """Needed when it is defined."""
    in_annotations: list[str]
    """In annotations that are not evaluated: they need not exist, but tell the types of settings if they do."""
    later: list[str]
    """Needed when it is called."""


def names_used(text: str, future: bool = False) -> NamesUsed:
    """Return the global names that a definition uses. `future` says that its annotations are not evaluated.

    Names of builtins are included.

    >>> names_used("@cache\\ndef f(x: 'Tensor' = START):\\n    return torch.nn.functional.relu(x) + helper(f)")
    NamesUsed(at_once=['START', 'cache'], in_annotations=['Tensor'], later=['f', 'helper', 'torch.nn.functional.relu'])
    """
    tree = ast.parse(text)
    table = symtable.symtable(f"{FUTURE}\n{text}" if future else text, "<definition>", "exec")
    at_once = {each.get_name() for each in table.get_symbols() if each.is_referenced()}
    later: set[str] = set()
    for kind, names in _nested(table):
        (at_once if kind == "class" else later).update(names)
    in_annotations = set(_in_annotations(tree, future)) - at_once
    dotted: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (path := _path(node)):
            dotted.setdefault(path.partition(".")[0], set()).add(path)

    def followed(names: set[str]) -> list[str]:
        paths = sorted(path for name in names for path in dotted.get(name, {name}))
        return [path for path in paths if not any(other.startswith(f"{path}.") for other in paths)]

    return NamesUsed(followed(at_once), followed(in_annotations), followed(later - at_once))


def _nested(table: symtable.SymbolTable) -> Iterator[tuple[str, set[str]]]:
    """Yield the kind of every scope within a definition, with the global names that it refers to."""
    for child in table.get_children():
        names = {each.get_name() for each in child.get_symbols() if each.is_global() and each.is_referenced()}
        kind = "class" if child.get_type() == "class" and table.get_type() != "function" else "function"
        yield kind, names
        for inner, found in _nested(child):
            yield (inner if kind == "class" else "function"), found


def _in_annotations(tree: ast.AST, future: bool) -> Iterator[str]:
    """Yield the names in annotations that are not evaluated: those that are strings, and with `future` all."""
    for node in ast.walk(tree):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(annotation, ast.expr):
                yield from names_in_texts(annotation)
                if future:
                    yield from (each.id for each in ast.walk(annotation) if isinstance(each, ast.Name))


def _path(node: ast.expr) -> str:
    """Return an expression such as `a.b.c` as text; "" for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _path(node.value)):
        return f"{before}.{node.attr}"
    return ""
