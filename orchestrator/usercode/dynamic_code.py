"""Code whose effects cannot be followed by name: it looks names up at run time, or changes what others share."""

import ast
from collections.abc import Iterator

from orch.usercode.statements import Statement, root_name

_BUILT_IN = {"__builtins__", "__import__", "compile", "eval", "exec", "globals", "locals", "vars"}
_WORDS = {
    "__code__", "__dict__", "__globals__", "__init_subclass__", "__set_name__", "__subclasses__", "import_module",
    "importlib", "sys.modules",
}  # fmt: skip
CHANGING = {
    "add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "register", "remove", "setdefault",
    "update",
}  # fmt: skip
"""Methods that change the object they are called on."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def is_dynamic(statement: Statement, users: frozenset[str]) -> bool:
    """Return whether a statement may use or change anything in the user's files, whatever it names.

    `users` are the names that stand for something of the user's in its file, and not for something of a package.
    """
    if isinstance(statement.node, ast.FunctionDef) and statement.node.name == "__getattr__":
        return True  # it answers for every name of the file
    return any(map(_looks_up, ast.walk(statement.node))) or any(_shared_changes(statement.node, frozenset(), users))


def _looks_up(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _BUILT_IN | _WORDS
    if isinstance(node, ast.Attribute):
        return node.attr in _WORDS or ast.unparse(node) in _WORDS
    if isinstance(node, ast.alias):
        return bool(_WORDS & set(node.name.split(".")))
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        module = getattr(node, "module", None) or ""
        return any(f"{module}.{alias.name}" in _WORDS for alias in node.names) or bool(_WORDS & {*module.split(".")})
    if isinstance(node, ast.FunctionDef):
        return node.name in _WORDS
    if isinstance(node, ast.ClassDef):
        metaclasses = [each.value for each in node.keywords if each.arg == "metaclass"]
        return any(ast.unparse(each).rpartition(".")[2] != "ABCMeta" for each in metaclasses)
    return isinstance(node, ast.Global)


def _shared_changes(
    node: ast.AST, local: frozenset[str], users: frozenset[str], inside: bool = False
) -> Iterator[bool]:
    """Yield whether each part of a function changes an object that it did not get or make itself.

    Statements outside functions run once, when the file is read: those that change something have effects anyway.
    """
    if isinstance(node, _FUNCTIONS):
        local, inside = local | _local_names(node), True
    elif isinstance(node, ast.ClassDef):
        local = local if inside else frozenset()
    if inside:
        yield root_name(_changed(node)) not in {*local, ""}
        yield root_name(_called(node)) in users - local
    for child in ast.iter_child_nodes(node):
        yield from _shared_changes(child, local, users, inside)


def _changed(node: ast.AST) -> ast.expr | None:
    """Return the object whose attribute or item a node sets or deletes."""
    if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
        return node.args[0] if node.args else None
    return None


def _called(node: ast.AST) -> ast.expr | None:
    """Return the object whose content a node changes by calling a method."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
        return node.func.value
    return None


def _local_names(function: ast.AST) -> frozenset[str]:
    """Return the names that a function binds, except by an import, and those of its arguments."""
    found = set()
    for each in ast.walk(function):
        if isinstance(each, ast.arg):
            found.add(each.arg)
        elif isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            found.add(each.id)
        elif isinstance(each, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and each.name:
            found.add(each.name)
    return frozenset(found)
