"""Conditions under which a plain process works: a slow disk, and one that remembers what a power cut would undo.

They replace functions of `os` in that process alone.
"""

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def slow(seed: int, seconds: float) -> None:
    """Let every sync of a file or folder take up to this long."""
    chance, sync = random.Random(seed), os.fsync

    def slow_sync(descriptor: int) -> None:
        time.sleep(chance.uniform(0.0, seconds))
        sync(descriptor)

    os.fsync = slow_sync  # type: ignore[assignment]


def journal(root: str, kept: str) -> None:
    """Write down every change below `root`, and every sync, so that `power_cut` can undo what was not on the disk.

    A file that is replaced or deleted is kept in the folder `kept`, where the journal is too.
    """
    place = Path(kept)
    place.mkdir(exist_ok=True)
    lines = os.open(place / "journal", os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    real: dict[str, Callable[..., Any]] = {
        name: getattr(os, name) for name in ("replace", "unlink", "mkdir", "fsync", "open")
    }
    count = iter(range(1 << 30))

    def note(**change: str) -> None:
        os.write(lines, (json.dumps(change) + "\n").encode())

    def inside(path: Any) -> str | None:
        text = os.path.abspath(os.fspath(path)) if isinstance(path, (str, os.PathLike)) else ""
        return text if text == root or text.startswith(f"{root}/") else None

    def keep(path: str) -> str:
        name = place / f"{os.getpid()}-{next(count)}"
        try:
            os.link(path, name)
        except FileNotFoundError:
            return ""
        return str(name)

    def replace(source: Any, target: Any, **more: Any) -> None:
        if path := inside(target):
            note(change="replace", path=path, source=os.path.abspath(source), before=keep(path))
        real["replace"](source, target, **more)

    def unlink(path: Any, **more: Any) -> None:
        if found := inside(path):
            note(change="unlink", path=found, before=keep(found))
        real["unlink"](path, **more)

    def mkdir(path: Any, *more: Any, **options: Any) -> None:
        if found := inside(path):
            note(change="mkdir", path=found)
        real["mkdir"](path, *more, **options)

    def opened(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & os.O_CREAT and (found := inside(path)):
            note(change="create", path=found)
        descriptor: int = real["open"](path, flags, *more, **options)
        return descriptor

    def fsync(descriptor: int) -> None:
        real["fsync"](descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if inside(path) or path == os.path.dirname(root):
            note(change="sync", path=path)

    os.replace, os.unlink, os.remove, os.mkdir, os.fsync, os.open = replace, unlink, unlink, mkdir, fsync, opened  # type: ignore[assignment]
