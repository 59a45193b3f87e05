"""A plan: a command, and what is done to the folder in which it runs."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STORE = "runs"
"""The name of the store in the folder of a case."""


@dataclass(frozen=True)
class Plan:
    """A command, and what makes it hostile."""

    words: tuple[str, ...]
    about: str
    prepare: Callable[[Path], None] = lambda folder: None
    """Fills the folder in which the command runs."""
    needs_store: bool = True
    may_change: tuple[str, ...] = (STORE,)
    given: str | None = None


def plan(*words: str, about: str, **more: Any) -> Plan:
    """Make a plan."""
    return Plan(tuple(words), about, **more)


def make_special(path: Path, kind: str) -> None:
    """Make something in the place of a file."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(10 << 30)
    else:
        path.symlink_to({"dangling": "nowhere", "loop": path.name, "device": "/dev/zero"}[kind])


def as_json(value: Any) -> str:
    """Return a value as JSON; something that is too deep for any reader if it has none."""
    try:
        return json.dumps(value)
    except (ValueError, RecursionError):
        return "[" * 5000


def write(path: Path, data: bytes) -> None:
    """Write a file."""
    path.write_bytes(data)


def copy_store(store: Path, folder: Path) -> None:
    """Copy a store into the folder of a case. Nothing of it is linked, because commands change it."""
    shutil.copytree(store, folder / STORE)
