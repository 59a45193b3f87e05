"""Errors caused by the user or the environment. Each message names the problem and the remedy.

OrchError
├── UnknownName        a model, task, sweep or setting that does not exist; suggests the nearest
├── InvalidSettings    settings that cannot work, all listed at once
│   └── InvalidCode    a user's sweep file that cannot be used, with the line if it is known
├── InvalidQuery       SQL that does not work, or asks for more than reading
├── BrokenPackage      an installed package that cannot be loaded
├── DamagedFile        a file that is damaged or has another format
├── UnsafePath         a link or a special file where one of ours is expected: it is neither read nor replaced
├── StoreUnreachable   a store that cannot be read or written
├── StoreFull          a store whose disk is full
├── StoreReadOnly      the results that came with orch, which cannot be changed
└── StoreTooNew        a store written by a later version of orch
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


class OrchError(Exception):
    """The base of all errors that are shown to users as a message without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in place of a traceback."""
        return [f"error: {line}" for line in str(self).splitlines()]


class UnknownName(OrchError):
    def __init__(self, kind: str, name: str, known: Iterable[str]):
        names = sorted(known)
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names)}"
        super().__init__(f"there is no {kind} {name!r}: {hint}")


def look_up_name(kind: str, name: str, registry: Mapping[str, T]) -> T:
    """Return what a name stands for in a registry, or raise `UnknownName`."""
    if name not in registry:
        raise UnknownName(kind, name, registry)
    return registry[name]


class InvalidSettings(OrchError):
    def __init__(self, problems: Sequence[str]):
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class InvalidCode(InvalidSettings):
    pass


class InvalidQuery(OrchError):
    pass


class BrokenPackage(OrchError):
    pass


class DamagedFile(OrchError):
    pass


class UnsafePath(OrchError):
    pass


class StoreUnreachable(OrchError):
    pass


class StoreFull(OrchError):
    pass


class StoreReadOnly(OrchError):
    def __init__(self) -> None:
        super().__init__("the bundled results cannot be changed: name a store of your own with --store")


class StoreTooNew(OrchError):
    pass
