"""The revision of a user's model or task: a hash of the code that it uses, so that an edit never uses old results.

It is made of syntax trees, not of text: formatting, comments and docstrings do not count. It has the class itself and,
transitively, every definition at the top level of the user's files that this refers to by name. Names of files, the
order of definitions and definitions that are not used do not count. Wherever a name does not tell what is used, more is
counted rather than less:

- statements with effects (calls, blocks, changes of attributes, decorators that register) count for every class of
  their file and of files that import it, and those of the sweep file for all;
- a module that is used other than as `module.name` counts with all its statements;
- every statement of every file counts if some code looks names up at run time (`eval`, `globals`, …) or if a function
  changes objects that it shares with others.

Annotations count where they can decide something: those of fields in a class, of `__init__`, of functions with a
decorator that may read them, and all of them if the code reads annotations itself.
"""

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator

from orch.usercode.code import UserCode
from orch.usercode.dynamic_code import is_dynamic
from orch.usercode.registration import may_register
from orch.usercode.statements import SourceFile, SourceFiles, Statement
from orch.usercode.syntax import SiblingImport

BITS = 48
"""Length of a revision, which fits the store's columns and is exact as a float, as in JSON, or in pandas with nulls."""

Binding = tuple[str, str]
"""A file, and a name that it binds at its top level."""
Link = tuple[str, list[Statement]]
"""What a statement refers to: a label that does not depend on names of files, and the statements that it stands for."""


def revision(code: UserCode, bindings: Iterable[Binding]) -> int:
    """Return the revision of the model or task that these names stand for."""
    statements = uses_of(code).of(bindings)
    numbers = {statement: number for number, (statement, _) in enumerate(statements)}
    parts = [
        [statement.form.text, [[label, [numbers[each] for each in targets]] for label, targets in links]]
        for statement, links in statements
    ]
    return int(hashlib.sha256(json.dumps(parts).encode()).hexdigest()[: BITS // 4], 16) or 1


@functools.lru_cache(maxsize=64)
def uses_of(code: UserCode) -> "Uses":
    return Uses(SourceFiles(code))


class Uses:
    """Which statements of a user's files use which others."""

    def __init__(self, files: SourceFiles):
        self._files = files
        self._all = [each for each in files.training if each.sibling is None]
        users = {name: frozenset(self._users_names(file)) for name, file in files.files.items()}
        self._dynamic = any(is_dynamic(each, users[each.file]) for each in self._all)
        self._effects = {name: list(self._effects_of(file, set())) for name, file in files.files.items()}

    def _users_names(self, file: SourceFile) -> Iterator[str]:
        """Yield the names that a file binds to something of the user's, also by an import in a function."""
        yield from (name for name, by in file.bindings.items() if not all(each.outside for each in by))
        yield from (each.bound for statement in file.statements for each in statement.form.imports)

    def bound_names(self) -> dict[str, set[str]]:
        """Return the names that each file binds itself, not by an import from another one."""
        return {
            name: {bound for bound, by in file.bindings.items() if any(each.sibling is None for each in by)}
            for name, file in self._files.files.items()
        }

    def of(self, bindings: Iterable[Binding]) -> list[tuple[Statement, list[Link]]]:
        """Return the statements that these names need, in an order that depends only on how they refer to each other.

        The first are those that bind the names.
        """
        order = list(self._files.files)
        known = {(file, name) for file, name in bindings if file in order}
        wanted = sorted(known, key=lambda binding: (binding[1], order.index(binding[0])))
        pending = unique(each for file, name in wanted for each in self._bound(file, name))
        if self._dynamic or not pending:
            pending = unique([*pending, *self._all])
        pending = unique([*pending, *self._effects[self._files.entry]])
        found: dict[Statement, list[Link]] = {}
        while pending:
            statement = pending.pop(0)
            if statement not in found:
                found[statement] = list(self._links(statement))
                pending += [each for _, targets in found[statement] for each in targets]
        return list(found.items())

    def _links(self, statement: Statement) -> Iterator[Link]:
        file = self._files.files[statement.file]
        modules = {each.bound: each for each in statement.form.imports if not each.name}
        for name in sorted(statement.form.reads):
            attributes = sorted(statement.form.reads[name])
            answers = {attribute: self._bound(statement.file, name, attribute) for attribute in attributes}
            if name in modules:
                answers = {key: unique([*value, *self._imported(modules[name], key)]) for key, value in answers.items()}
            position = self._position(file, name, statement)
            if len(set(map(tuple, answers.values()))) == 1:
                answers = {"": answers[attributes[0]]}
            yield from ((f"{name}.{key}{position}", targets) for key, targets in answers.items() if targets)
        for number, each in enumerate(statement.form.imports):
            if each.name or not statement.defines:
                yield f"import {number:03}", self._imported(each, "")
            elif (module := self._files.file_of(each.module)) is not None:
                yield f"import {number:03}", self._effects[module.file]
        if effects := self._effects[statement.file]:
            before = sum(each.file == statement.file and each.position < statement.position for each in effects)
            yield f"effects after {before}", effects

    def _position(self, file: SourceFile, name: str, statement: Statement) -> str:
        """Return where a statement stands among those that bind a name, if there are several."""
        bound = [each for each in file.bindings.get(name, ()) if not each.outside]
        if len(bound) < 2:
            return ""
        return f" after {sum(each.position < statement.position for each in bound)}"

    def _bound(
        self, file: str, name: str, attribute: str = "", seen: frozenset[Binding] = frozenset()
    ) -> list[Statement]:
        """Return the statements that define what a name, or an attribute of it, stands for in a file."""
        found: list[Statement] = []
        if (file, name) in seen:
            return found
        bound = self._files.files[file].bindings.get(name, [])
        if all(each.outside for each in bound):
            return sorted(bound, key=lambda each: each.form.text)
        for statement in bound:
            if statement.sibling is None:
                found.append(statement)
            else:
                found += self._imported(statement.sibling, attribute, seen | {(file, name)})
        return unique(found)

    def _imported(
        self, sibling: SiblingImport, attribute: str, seen: frozenset[Binding] = frozenset()
    ) -> list[Statement]:
        """Return the statements that define what an import stands for, or an attribute of it if it is a module."""
        module = self._files.file_of(sibling.module)
        if module is None:
            return []
        if sibling.name in module.bindings:
            return self._bound(module.file, sibling.name, attribute, seen)
        if not sibling.name and attribute in module.bindings:
            return self._bound(module.file, attribute, "", seen)
        return self._everything(module, set())

    def _everything(self, module: SourceFile, seen: set[str]) -> list[Statement]:
        """Return all statements of a file, and of those that it imports names from."""
        if module.file in seen:
            return []
        seen.add(module.file)
        found: list[Statement] = []
        for statement in module.statements:
            if statement.sibling is None:
                found.append(statement)
            elif (other := self._files.file_of(statement.sibling.module)) is not None:
                found += self._everything(other, seen)
        return found

    def _has_effects(self, statement: Statement) -> bool:
        def bound(at: Statement, name: str) -> list[Statement]:
            return self._bound(at.file, name)

        return self._files.has_effects(statement) or (not statement.asks and may_register(statement, bound))

    def _effects_of(self, file: SourceFile, seen: set[str]) -> Iterator[Statement]:
        """Yield the statements with effects that run when a file is imported, in their order."""
        if file.file in seen:
            return
        seen.add(file.file)
        for statement in file.statements:
            imported = [] if statement.defines else statement.form.imports
            for sibling in [statement.sibling] if statement.sibling else imported:
                if (module := self._files.file_of(sibling.module)) is not None:
                    yield from self._effects_of(module, seen)
                    if sibling.name == "*":
                        yield from self._everything(module, set())
            if statement.sibling is None and self._has_effects(statement):
                yield statement


def unique(statements: Iterable[Statement]) -> list[Statement]:
    """Return the statements in their order, each once."""
    return list(dict.fromkeys(statements))
