"""The global names that a definition uses, found in its text."""

import ast
import symtable
from collections.abc import Iterator


def names_used(text: str) -> tuple[list[str], list[str]]:
    """Return the global names that a class or function needs when it is defined, and those that it needs when called.

    Names are followed by the attributes that are read from them. Names of builtins are included.

    >>> names_used("@cache\\ndef f(x=START):\\n    return torch.nn.functional.relu(x) + helper(f)")
    (['START', 'cache'], ['f', 'helper', 'torch.nn.functional.relu'])
    """
    tree = ast.parse(text)
    table = symtable.symtable(text, "<definition>", "exec")
    at_once = {each.get_name() for each in table.get_symbols() if each.is_referenced()} | _in_annotations(tree)
    later: set[str] = set()
    for kind, names in _nested(table):
        (at_once if kind == "class" else later).update(names)
    dotted: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (path := _path(node)):
            dotted.setdefault(path.partition(".")[0], set()).add(path)

    def followed(names: set[str]) -> list[str]:
        paths = sorted(path for name in names for path in dotted.get(name, {name}))
        return [path for path in paths if not any(other.startswith(f"{path}.") for other in paths)]

    return followed(at_once), followed(later - at_once)


def _nested(table: symtable.SymbolTable) -> Iterator[tuple[str, set[str]]]:
    """Yield the kind of every scope within a definition, with the global names that it refers to."""
    for child in table.get_children():
        names = {each.get_name() for each in child.get_symbols() if each.is_global() and each.is_referenced()}
        kind = "class" if child.get_type() == "class" and table.get_type() != "function" else "function"
        yield kind, names
        for inner, found in _nested(child):
            yield (inner if kind == "class" else "function"), found


def _in_annotations(tree: ast.AST) -> set[str]:
    """Return the names in annotations that are texts, such as `x: "Tensor"`: they are read when settings are."""
    found = set()
    for node in ast.walk(tree):
        annotation = node.annotation if isinstance(node, ast.AnnAssign) else None
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            inside = ast.walk(ast.parse(annotation.value, mode="eval"))
            found |= {each.id for each in inside if isinstance(each, ast.Name)}
    return found


def _path(node: ast.expr) -> str:
    """Return an expression such as `a.b.c` as text; "" for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _path(node.value)):
        return f"{before}.{node.attr}"
    return ""
