"""A store's files in a folder of this machine or of a network file system."""

import contextlib
import errno
import os
import secrets
import time
from pathlib import Path

from orch.store.crash_points import crash_point
from orch.store.files import reaching

ABANDONED_SECONDS = 3600
"""A temporary file this old has no writer any more: writing one takes seconds."""


class LocalFiles:
    def __init__(self, root: str, location: str):
        self.location = location
        self._root = Path(root).expanduser().absolute()

    def put(self, path: str, data: bytes, kind: str = "file") -> None:
        target = self._root / path
        aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        with reaching(self.location, "write to"):
            try:
                self._write(aside, data)
                crash_point(f"{kind}-written")
                os.replace(aside, target)
            except BaseException as error:
                with contextlib.suppress(OSError):
                    aside.unlink(missing_ok=True)
                if isinstance(error, FileNotFoundError):
                    raise OSError("its folder is being deleted") from error
                raise
            _sync_folder(target.parent)
        crash_point(f"{kind}-renamed")

    def _write(self, path: Path, data: bytes) -> None:
        with open(_create(path), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def get(self, path: str) -> bytes:
        with reaching(self.location, "read"):
            return (self._root / path).read_bytes()

    def delete(self, path: str) -> None:
        with reaching(self.location, "delete from"):
            (self._root / path).unlink(missing_ok=True)

    def move(self, path: str, target: str) -> None:
        with reaching(self.location, "write to"):
            _make_folder((self._root / target).parent)
            os.replace(self._root / path, self._root / target)

    def sizes(self, folder: str) -> dict[str, int]:
        found: dict[str, int] = {}
        with reaching(self.location, "read"):
            self._sizes_into(found, folder)
        return found

    def _sizes_into(self, found: dict[str, int], folder: str) -> None:
        """Asks for subfolders anew after each one, because the next may have been created only meanwhile."""
        visited = ""
        while True:
            sizes, folders = self._scan(folder)
            if not visited:
                found.update(sizes)
            later = [name for name in folders if name > visited]
            if not later:
                return
            visited = min(later)
            self._sizes_into(found, f"{folder}/{visited}")

    def _scan(self, folder: str) -> tuple[dict[str, int], list[str]]:
        sizes, folders = {}, []
        with contextlib.suppress(FileNotFoundError), os.scandir(self._root / folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir():
                    folders.append(entry.name)
                    continue
                with contextlib.suppress(FileNotFoundError):
                    sizes[f"{folder}/{entry.name}"] = entry.stat().st_size
        return sizes, folders

    def exists(self) -> bool:
        with reaching(self.location, "read"), contextlib.suppress(FileNotFoundError), os.scandir(self._root) as entries:
            return any(entries)
        return False

    def local_path(self, path: str) -> str | None:
        return str(self._root / path)

    def sweep(self, folder: str) -> None:
        long_ago = time.time() - ABANDONED_SECONDS
        with reaching(self.location, "delete from"):
            for place, _, names in os.walk(self._root / folder):
                for name in names:
                    file = Path(place, name)
                    with contextlib.suppress(FileNotFoundError):
                        if name.startswith(".") and file.stat().st_mtime < long_ago:
                            file.unlink()


def _create(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        _make_folder(path.parent)
        return os.open(path, flags, 0o666)


def _make_folder(folder: Path) -> None:
    """With its parents, and for good: a folder lost in a power cut would take its files with it."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


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
