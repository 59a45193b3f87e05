"""Atomic writing: a file is written completely or not at all, even if the process or the machine dies."""

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from orch.core.errors import UnsafePath

_ASIDE = re.compile(r"\..+\.[0-9a-f]{8}")


def write_atomically(
    path: Path,
    data: bytes | Iterable[bytes | memoryview],
    *,
    durable: bool = False,
    passing: Callable[[str], None] = lambda step: None,
) -> None:
    """Create or replace a file: write a hidden file in its folder, then rename that file.

    The hidden file is named `.<name>.<random>`, and removed if anything fails. With `durable`, missing folders are
    created, and when this returns the file would survive a power cut. `passing` is called with the
    name of each step that was made: created, written, renamed and, with `durable`, synced.
    A device or a pipe, such as /dev/null, is written to and never replaced. A link to anything else is refused.
    """
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        _write(path, [data] if isinstance(data, bytes) else data, durable, passing)
    except OSError as error:
        error.filename = str(path)  # a full disk does not say which file it is about, nor a user of the hidden one
        raise


def _write(path: Path, data: Iterable[bytes | memoryview], durable: bool, passing: Callable[[str], None]) -> None:
    if is_special(path):
        with path.open("wb") as device:
            device.writelines(data)
        return
    refuse_link(path)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    create = partial(_create_with_folders, passing=passing) if durable else _create
    try:
        with open(aside, "wb", opener=create) as file:
            passing("created")
            file.writelines(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        passing("written")
        os.replace(aside, path)
        passing("renamed")
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    if durable:
        _sync_folder(path.parent)
        passing("synced")


def is_aside(name: str) -> bool:
    """Return whether a file has the name of a hidden file of `write_atomically`, which its writer may have left.

    >>> is_aside(".part.parquet.0a1b2c3d"), is_aside(".gitignore"), is_aside("part.parquet")
    (True, False, False)
    """
    return _ASIDE.fullmatch(name) is not None


def is_special(path: Path) -> bool:
    """Return whether a path is that of a device, a pipe or a socket, or of a link to one."""
    return path.exists() and not path.is_file() and not path.is_dir()


def refuse_link(path: Path, option: str = "") -> None:
    """Raise `UnsafePath` for a symbolic link to a file or a folder, which would be replaced; `option` named it."""
    if path.is_symlink() and not is_special(path):
        target = os.path.realpath(path)
        raise UnsafePath(f"{option} {path} is a symbolic link: name what it leads to, {target}".strip())


def make_folder_durably(folder: Path, passing: Callable[[str], None] = lambda step: None) -> None:
    """Create a folder and its parents so that they survive a power cut, which would take their files with them.

    `passing` is called with "folder created" for each.
    """
    if folder.is_dir():
        return
    make_folder_durably(folder.parent, passing)
    folder.mkdir(exist_ok=True)
    passing("folder created")
    _sync_folder(folder.parent)


def _create(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_EXCL, 0o666)


def _create_with_folders(path: str, flags: int, passing: Callable[[str], None]) -> int:
    try:
        return _create(path, flags)
    except FileNotFoundError:
        make_folder_durably(Path(path).parent, passing)
        return _create(path, flags)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot do this for a folder; they order the rename themselves.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
