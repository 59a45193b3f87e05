"""The statements at the top level of a user's files: what each binds, what it reads, and whether it has effects."""

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from orch.usercode.code import SUFFIX, UserCode
from orch.usercode.syntax import Form, SiblingImport, is_text, sibling_imports, words

ASKING = {"TITLE", "REPRODUCES", "cells"}
"""What a sweep file defines to ask for trials. No result depends on it, unless other code uses it."""
_GRID = "grid"
_REFLECTIVE = {
    "__annotations__", "__doc__", "beartype", "get_type_hints", "getdoc", "getfullargspec", "getsource", "inspect",
    "jaxtyped", "jit", "signature", "singledispatch", "singledispatchmethod", "typechecked", "validate_call",
}  # fmt: skip
"""Words of code that may read docstrings and annotations."""
_HARMLESS = sys.stdlib_module_names | {"numpy", "orch", "torch"}
"""Packages whose import without a use has no effect on training."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement at the top level of a file, or one name of an import statement."""

    file: str
    position: int
    node: ast.stmt
    binds: frozenset[str]
    form: Form
    sibling: SiblingImport | None = None
    """The file of the same folder, or the name in it, that this statement imports."""
    outside: str = ""
    """The package that this statement imports a name from."""

    @property
    def defines(self) -> bool:
        """Whether it defines a function or a class, whose body runs later or apart from other statements."""
        return isinstance(self.node, (*_FUNCTIONS, ast.ClassDef))

    @property
    def asks(self) -> bool:
        """Whether it only asks for trials."""
        return bool(self.binds) and self.binds <= ASKING


class SourceFile:
    """The statements of a user's file."""

    def __init__(self, file: str, tree: ast.Module, reflective: bool):
        self.file = file
        self.statements = list(_statements(file, tree, reflective))

    @cached_property
    def bindings(self) -> dict[str, list[Statement]]:
        """The statements that bind each name."""
        found: dict[str, list[Statement]] = {}
        for statement in self.statements:
            for name in statement.binds:
                found.setdefault(name, []).append(statement)
        return found


class SourceFiles:
    """All files of a user's code. The sweep file comes first."""

    def __init__(self, code: UserCode):
        trees = {name: ast.parse(text) for name, text in code.python_files.items()}
        read = set().union(*(words(node) for tree in trees.values() for node in tree.body))
        reflective = bool(read & _REFLECTIVE)
        self.files = {name: SourceFile(name, tree, reflective) for name, tree in trees.items()}
        self.entry = code.file
        self._read = {name for file in self.files.values() for each in file.statements for name in _read_in(each)}

    def file_of(self, module: str) -> SourceFile | None:
        return self.files.get(f"{module}{SUFFIX}")

    @property
    def training(self) -> Iterator[Statement]:
        """The statements of all files except those that only ask for trials."""
        for file in self.files.values():
            yield from (each for each in file.statements if not self._only_asks(each))

    def _only_asks(self, statement: Statement) -> bool:
        asks = statement.asks and not statement.binds & self._read
        return statement.file == self.entry and (asks or _is_grid(statement.node))

    def has_effects(self, statement: Statement) -> bool:
        """Return whether a statement may change what others do, so that it counts for all of them."""
        node = statement.node
        if statement.defines or (statement.sibling is not None and statement.sibling.name != "*"):
            return False
        if isinstance(node, ast.ImportFrom):
            return node.module == "__future__" or node.names[0].name == "*"
        if isinstance(node, ast.Import):
            return statement.outside not in _HARMLESS and not statement.binds & self._read
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and _binds_only_names(node):
            return bool(self._calls_for_effect(statement))
        return not self._only_asks(statement)

    def _calls_for_effect(self, statement: Statement) -> bool:
        """Return whether nothing reads the value of a call, which then is made for its effect."""
        if statement.asks or (statement.binds - {"_"}) & self._read:
            return False
        calls = [each for each in ast.walk(statement.node) if isinstance(each, ast.Call)]
        return any(not self._is_ours(call, statement.file) for call in calls)

    def _is_ours(self, call: ast.Call, file: str) -> bool:
        """Return whether a call is of a function of orch, such as `orch.model`."""
        bound = self.files[file].bindings.get(root_name(call.func), [])
        return bool(bound) and all(each.outside == "orch" for each in bound)


def _statements(file: str, tree: ast.Module, reflective: bool) -> Iterator[Statement]:
    for position, node in enumerate(tree.body):
        if isinstance(node, ast.ImportFrom) and node.level:
            for sibling in sibling_imports(node):
                yield Statement(file, position, node, frozenset({sibling.bound}), Form(), sibling)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield _outside_import(file, position, node, alias)
        elif not is_text(node) and not isinstance(node, ast.Pass) and (kept := _what_runs(node)) is not None:
            yield Statement(file, position, kept, frozenset(_bound(kept)), Form.of(kept, reflective))


def _outside_import(file: str, position: int, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> Statement:
    package = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
    bound = alias.asname or (alias.name if package else alias.name.split(".")[0])
    single = ast.ImportFrom(node.module, [alias], 0) if isinstance(node, ast.ImportFrom) else ast.Import(names=[alias])
    ast.copy_location(single, node)
    form = Form(text=f"import {package}{alias.name} as {bound}")
    return Statement(file, position, single, frozenset({bound}), form, outside=f"{package}{alias.name}".split(".")[0])


def _what_runs(node: ast.stmt) -> ast.stmt | None:
    """Return a statement without the block of an `if` that never runs in a worker; None if nothing is left."""
    if isinstance(node, ast.If) and ast.unparse(node.test) in (
        "TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'",
    ):  # fmt: skip
        return ast.copy_location(ast.If(ast.Constant(False), [], node.orelse), node) if node.orelse else None
    return node


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds in its file."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        yield node.name
        return
    loops = [each.target for each in ast.walk(node) if isinstance(each, ast.comprehension)]
    inside = {name for target in loops for name in ast.walk(target)}  # variables of a comprehension are its own
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load) and each not in inside:
            yield each.id
        elif isinstance(each, (*_FUNCTIONS, ast.ClassDef)):
            yield each.name
        elif isinstance(each, ast.alias):
            yield each.asname or each.name.split(".")[0]
        elif isinstance(each, ast.ExceptHandler) and each.name:
            yield each.name


def _read_in(statement: Statement) -> Iterator[str]:
    """Yield every name that a statement reads: of its own file, of another one, or as an attribute."""
    if statement.sibling is not None:
        yield statement.sibling.name
        return
    for each in ast.walk(statement.node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.ImportFrom) and each.level:
            yield from (alias.name for alias in each.names)


def _binds_only_names(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> bool:
    targets: Iterable[ast.expr] = node.targets if isinstance(node, ast.Assign) else [node.target]
    return all(isinstance(each, (ast.Name, ast.Tuple, ast.List, ast.Starred, ast.expr_context))
               for target in targets for each in ast.walk(target))  # fmt: skip


def _is_grid(node: ast.stmt) -> bool:
    """Return whether a statement only calls `orch.grid`, which describes a sweep."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) in (_GRID, f"orch.{_GRID}")
    )


def root_name(node: ast.expr | None) -> str:
    """Return the name that an expression such as `name.attribute[0]` begins with; empty if it is none."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
