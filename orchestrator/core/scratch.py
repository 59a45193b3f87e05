"""Temporary folders that only this user can read, and that outlive their process by no more than one other run.

A folder is locked while its process lives. The system releases the lock when the process ends, however it ends, so a
folder that can be locked was left behind by a process that was killed; the next process removes it.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "orch-work-"
_SHORT = "/tmp"
_MOST_CHARACTERS = 20
"""Length of a temporary folder below which Ray's sockets, whose paths are limited to 107 characters, find room."""
_held: set[str] = set()


@contextlib.contextmanager
def scratch_folder(what: str, parent: str | None = None, short: bool = False) -> Iterator[Path]:
    """Make a temporary folder for `what`, and remove it at the end. A `short` one has room for the paths of sockets."""
    parent = parent or tempfile.gettempdir()
    if short and len(parent) > _MOST_CHARACTERS:
        parent = _SHORT
    remove_leftovers(parent)
    path, lock = _make(parent, what)
    _held.add(path)
    try:
        yield Path(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)
        _held.discard(path)
        os.close(lock)


def _make(parent: str, what: str) -> tuple[str, int]:
    while True:
        path = tempfile.mkdtemp(prefix=f"{_PREFIX}{what}-", dir=parent)  # its mode is 0700
        lock = _lock(path)
        if lock is not None and os.path.isdir(path):
            return path, lock
        if lock is not None:  # another process took it for a leftover before it was locked
            os.close(lock)


def _lock(path: str) -> int | None:
    """Lock a folder, and return the descriptor that holds the lock; None if another process has it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def remove_leftovers(parent: str) -> None:
    """Remove the folders of this user's processes that were killed."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(_PREFIX) or entry.stat(follow_symlinks=False).st_uid != os.getuid():
                continue
            if (lock := _lock(entry.path)) is not None:
                shutil.rmtree(entry.path, ignore_errors=True)
                os.close(lock)


def remove_own() -> None:
    """Remove the folders of this process, which is about to end without leaving their contexts."""
    for path in list(_held):
        shutil.rmtree(path, ignore_errors=True)
