"""Definitions that may change an object which other code reads: `@register`, `FIRST = ALL.pop()`."""

import ast
from collections.abc import Callable, Iterator

from orch.usercode.dynamic_code import CHANGING
from orch.usercode.statements import Statement, root_name

Bound = Callable[[Statement, str], list[Statement]]
"""Returns the statements that define what a name stands for where a statement stands."""
_PLAIN = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def may_register(statement: Statement, bound: Bound) -> bool:
    """Return whether a definition may change an object of the user's files when it is made.

    It may if it calls a changing method of one, passes one to a function of the user's, or sets an attribute or item.
    """

    def is_shared(name: str) -> bool:
        return any(not each.defines and not _is_plain(each, bound, frozenset()) for each in bound(statement, name))

    for node in _run_at_once(statement.node):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            if any(not each.outside for each in bound(statement, root_name(node))):
                return True
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING and is_shared(root_name(node.func)):
                return True
            is_users = any(not each.outside for each in bound(statement, root_name(node.func)))
            named = (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
            if is_users and any(map(is_shared, named)):
                return True
    return any(is_shared(root_name(each)) for each in getattr(statement.node, "decorator_list", ()))


def _run_at_once(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a statement that run when it does: not the bodies of functions, but their defaults."""
    yield node
    for name, value in ast.iter_fields(node):
        if isinstance(node, (*_FUNCTIONS, ast.Lambda)) and name == "body":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _run_at_once(child)


def _is_plain(statement: Statement, bound: Bound, seen: frozenset[Statement]) -> bool:
    """Return whether a statement binds only numbers, texts and the like, or something of a package."""
    if statement.outside:
        return True
    if not isinstance(statement.node, (ast.Assign, ast.AnnAssign)) or statement.node.value is None or statement in seen:
        return False
    for each in ast.walk(statement.node.value):
        if isinstance(each, ast.Name):
            if not all(_is_plain(other, bound, seen | {statement}) for other in bound(statement, each.id)):
                return False
        elif isinstance(each, ast.expr) and not isinstance(each, _PLAIN):
            return False
    return True
