"""The definitions in which two versions of a user's code differ, as far as a model or a task uses them."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

from orch.usercode.code import UserCode
from orch.usercode.revision import Binding, revision, uses_of
from orch.usercode.statements import Statement
from orch.usercode.syntax import Form, is_text

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WITH_BODY = (*_FUNCTIONS, ast.ClassDef, ast.For, ast.While, ast.With, ast.If)


@dataclass(frozen=True)
class Piece:
    """A function, a method, a class without its methods, a constant, or another statement."""

    label: str
    file: str
    nodes: tuple[ast.stmt, ...]
    reflective: bool
    """Whether docstrings and annotations count."""

    @property
    def form(self) -> str:
        return Form.of(list(self.nodes), self.reflective).text


def changes(old: UserCode, new: UserCode, bindings: Iterable[Binding]) -> list[str]:
    """Return what was edited of what these names of the new code use, each with its place there.

    Nothing is returned if the two differ only in what has no effect, such as comments.
    """
    bindings = list(bindings)
    same = _same_names(old, new, bindings)
    before = _pieces(old, same)
    after = _pieces(new, bindings)
    edited = [(key, piece) for key, piece in after.items() if key not in before or before[key].form != piece.form]
    removed = [piece for key, piece in before.items() if key not in after]
    order = [name for name, _ in new.files]
    places = [(order.index(piece.file), _line(before.get(key), piece), piece) for key, piece in edited]
    described = [
        f"{piece.label} ({piece.file}, line {line})" for _, line, piece in sorted(places, key=lambda at: at[:2])
    ]
    described += [f"{piece.label} (no longer in {piece.file})" for piece in removed] * (not described)
    if not described and revision(old, same) != revision(new, bindings):
        return [f"the imports or the order of statements (in {new.file})"]
    return described


def _same_names(old: UserCode, new: UserCode, bindings: Iterable[Binding]) -> list[Binding]:
    """Return the same names in the old code, in the file of the same name or in any other."""
    files = uses_of(old).bound_names()
    found = []
    for file, name in bindings:
        same = old.file if file == new.file else file
        others = [each for each, names in files.items() if name in names]
        found += [(same, name)] if name in files.get(same, ()) else [(each, name) for each in others]
    return found


def _pieces(code: UserCode, bindings: Iterable[Binding]) -> dict[tuple[str, str], Piece]:
    """Return the pieces of what these names use. The key of a piece names its file, unless it is the sweep's."""
    found: dict[tuple[str, str], Piece] = {}
    for statement, _ in uses_of(code).of(bindings):
        for piece in _divided(statement):
            file = "" if piece.file == code.file else piece.file
            key = (file, piece.form if piece.label == "a statement" else piece.label)
            same = found[key].nodes if key in found else ()
            found[key] = replace(piece, nodes=(*same, *piece.nodes))
    return found


def _divided(statement: Statement) -> Iterator[Piece]:
    """Yield the pieces of a statement: of a class, its methods and the rest."""
    node = statement.node

    def piece(label: str, part: ast.stmt) -> Piece:
        return Piece(label, statement.file, (part,), statement.form.reflective)

    if isinstance(node, ast.ClassDef):
        methods = [each for each in node.body if isinstance(each, _FUNCTIONS)]
        yield from (piece(f"{node.name}.{method.name}", method) for method in methods)
        body = [each for each in node.body if each not in methods]
        rest = ast.ClassDef(
            name=node.name, bases=node.bases, keywords=node.keywords, body=body, decorator_list=node.decorator_list
        )
        yield piece(f"class {node.name}", ast.copy_location(rest, node))
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield piece(f"the import of {', '.join(sorted(statement.binds))}", node)
    elif statement.binds and isinstance(node, (*_FUNCTIONS, ast.Assign, ast.AnnAssign, ast.AugAssign)):
        yield piece(", ".join(sorted(statement.binds)), node)
    else:
        yield piece("a statement", node)


def _body(node: ast.stmt) -> list[ast.stmt]:
    return [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]


def _line(before: Piece | None, after: Piece) -> int:
    """Return the line of the first statement of a piece that differs from the earlier one."""
    old, new = (before.nodes[0] if before is not None else None), after.nodes[0]
    while old is not None and isinstance(new, _WITH_BODY) and type(old) is type(new):
        olds, news = ([each for each in _body(node) if not is_text(each)] for node in (old, new))
        pairs = zip_longest(olds, news)
        differing = ((a, b) for a, b in pairs if b is not None and (a is None or Form.of(a).text != Form.of(b).text))
        old, inner = next(differing, (None, None))
        if inner is None:
            break
        new = inner
    return new.lineno
