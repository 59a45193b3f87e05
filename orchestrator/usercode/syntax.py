"""The canonical form of Python syntax. Code that differs only in formatting has one form, on every version of Python.

`ast.dump` does not do: its output differs between versions of Python, and it has docstrings and annotations.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_IGNORED = {"ctx", "kind", "type_comment", "type_ignores", "simple"}
_INERT = {
    "abstractmethod", "cache", "cached_property", "classmethod", "contextmanager", "deleter", "getter",
    "inference_mode", "lru_cache", "no_grad", "overload", "override", "property", "setter", "staticmethod", "wraps",
}  # fmt: skip
"""Decorators of functions that do not read annotations."""
_INERT_FOR_CLASSES = {"dataclass", "dataclasses.dataclass", "final", "total_ordering", "orch.model"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class SiblingImport:
    """An import of a file of the same folder, as in `from .module import name`, or `from . import module`."""

    module: str
    name: str
    """What is imported from the module; empty if it is the module itself."""
    bound: str
    """The name that it gets."""


@dataclass
class Form:
    """The canonical form of a piece of code and everything that it refers to by name."""

    reflective: bool = False
    """Whether docstrings and all annotations count, because the code may read them."""
    text: str = ""
    reads: dict[str, set[str]] = field(default_factory=dict)
    """The names that it reads, each with the attributes read of it; an empty attribute for the name itself."""
    imports: list[SiblingImport] = field(default_factory=list)
    """The imports within functions and blocks, in the order in which they stand."""

    @classmethod
    def of(cls, node: ast.AST | list[ast.stmt], reflective: bool = False) -> "Form":
        form = cls(reflective)
        form.text = form._list(node, False, False) if isinstance(node, list) else form._node(node, False, False)
        return form

    def _node(self, node: ast.AST, in_class: bool, annotated: bool) -> str:
        """Return the text of a node that stands in the body of a class, or in a function whose annotations count."""
        if isinstance(node, ast.Constant):
            return f"{type(node.value).__name__}:{node.value!r}"
        if isinstance(node, ast.Name):
            self._read(node.id, "")
            return f"Name:{node.id}"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            self._read(node.value.id, node.attr)
            return f"Attribute({node.attr},Name:{node.value.id})"
        if isinstance(node, ast.ImportFrom) and node.level:
            self.imports += sibling_imports(node)
            return f"Sibling{[(alias.name, alias.asname or alias.name) for alias in node.names]}"
        if isinstance(node, ast.AnnAssign) and not (in_class or annotated or self.reflective):
            value = "" if node.value is None else self._node(node.value, False, False)
            targets = self._list([node.target], False, False)
            return f"Assign(targets={targets},value={value})" if value else f"Declared({targets})"
        if isinstance(node, ast.Delete):
            flat = [each for target in node.targets for each in getattr(target, "elts", [target])]
            return f"Delete({self._list(flat, False, False)})"
        if isinstance(node, ast.JoinedStr):
            return f"JoinedStr({self._pieces(node)})"
        return self._fields(node, in_class, annotated)

    def _fields(self, node: ast.AST, in_class: bool, annotated: bool) -> str:
        annotated = annotated or self._reads_annotations(node)
        in_class = isinstance(node, ast.ClassDef) or (in_class and not isinstance(node, _FUNCTIONS))
        found = []
        for name in sorted(set(node._fields) - _IGNORED):
            value = getattr(node, name, None)
            if name in ("annotation", "returns") and value is not None:
                if isinstance(node, ast.AnnAssign) or annotated or self.reflective:
                    self._read_annotation(value)
                    found.append(f"{name}={self._node(value, False, annotated)}")
            elif isinstance(value, list):
                if text := self._list(value, in_class, annotated):
                    found.append(f"{name}={text}")
            elif isinstance(value, ast.AST):
                found.append(f"{name}={self._node(value, False, annotated)}")
            elif value is not None:
                found.append(f"{name}={value!r}")
        return f"{type(node).__name__}({','.join(found)})"

    def _list(self, nodes: Iterable[ast.AST | str | None], in_class: bool, annotated: bool) -> str:
        found = [
            self._node(node, in_class, annotated) if isinstance(node, ast.AST) else repr(node)
            for node in nodes
            if not (isinstance(node, ast.Pass) or (is_text(node) and not self.reflective))
        ]
        return f"[{','.join(found)}]" if found else ""

    def _pieces(self, node: ast.JoinedStr) -> str:
        """Return the pieces of an f-string, in which versions of Python divide the plain text differently."""
        found: list[str] = []
        plain = ""
        for piece in node.values:
            if isinstance(piece, ast.Constant):
                plain += str(piece.value)
            else:
                found += [repr(plain)] * bool(plain) + [self._node(piece, False, False)]
                plain = ""
        return ",".join(found + [repr(plain)] * bool(plain))

    def _read(self, name: str, attribute: str) -> None:
        self.reads.setdefault(name, set()).add(attribute)

    def _read_annotation(self, annotation: ast.expr) -> None:
        """Note the names in an annotation that is written as a string."""
        for name in names_in_texts(annotation):
            self._read(name, "")

    def _reads_annotations(self, node: ast.AST) -> bool:
        """Return whether a function's annotations count: those of `__init__`, or where a decorator may read them."""
        if isinstance(node, ast.ClassDef):
            return any(_decorator(each) not in _INERT_FOR_CLASSES for each in node.decorator_list)
        if isinstance(node, _FUNCTIONS):
            decorators = [_decorator(each).rpartition(".")[2] for each in node.decorator_list]
            return node.name == "__init__" or any(name not in _INERT for name in decorators)
        return False


def _decorator(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def is_text(node: ast.AST | str | None) -> bool:
    """Return whether a statement is only a constant, such as a docstring, which has no effect."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def names_in_texts(annotation: ast.expr) -> Iterator[str]:
    """Yield the names in the parts of an annotation that are strings, such as "Tensor" in `list["Tensor"]`.

    A string need not be code: "batch time" describes a shape.
    """
    for each in ast.walk(annotation):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            try:
                tree = ast.parse(each.value, mode="eval")
            except (SyntaxError, ValueError):
                continue
            yield from (name.id for name in ast.walk(tree) if isinstance(name, ast.Name))


def sibling_imports(node: ast.ImportFrom) -> Iterator[SiblingImport]:
    """Yield what a statement imports from files of the same folder."""
    for alias in node.names:
        bound = alias.asname or alias.name
        if node.module:
            yield SiblingImport(node.module.split(".")[0], alias.name, bound)
        else:
            yield SiblingImport(alias.name, "", bound)


def words(node: ast.AST) -> set[str]:
    """Return every identifier that stands in a piece of code, whatever it is there."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            found.add(each.id)
        elif isinstance(each, ast.Attribute):
            found.add(each.attr)
        elif isinstance(each, ast.alias):
            found.update(each.name.split("."))
        elif isinstance(each, (*_FUNCTIONS, ast.ClassDef)):
            found.add(each.name)
        elif isinstance(each, ast.ImportFrom) and each.module:
            found.update(each.module.split("."))
    return found
