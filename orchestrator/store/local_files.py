"""The files of a store in a folder, on this machine or on a network file system.

The store stays inside its folder: a symbolic link or a special file below the root is refused, because whatever it
leads to would be read, moved and deleted as if it were the store's. The root itself may be a link.
"""

import contextlib
import os
import stat
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from orch.core.atomic_write import is_aside, make_folder_durably, write_atomically
from orch.core.errors import UnsafePath
from orch.core.reading import read_bytes
from orch.store.crash_points import crash_point, kind_of
from orch.store.files import Data, reaching

ABANDONED_SECONDS = 3600
"""A temporary file this old has no living writer: writing one takes seconds."""


class LocalFiles:
    """Files below a folder. See `orch.store.files.Files` for what each method promises."""

    links_allowed = False

    def __init__(self, root: str, location: str):
        self.location = location
        self._root = Path(root).expanduser().absolute()

    @property
    def listed(self) -> Mapping[str, str]:
        return {}

    def put(self, path: str, data: Data) -> None:
        with reaching(self.location, "write to"):
            try:
                write_atomically(self._place(path), data, durable=True, passing=partial(_crash_point_of, path))
            except FileNotFoundError as error:
                raise OSError("its folder is being deleted") from error

    def get(self, path: str, most: int | None = None) -> bytes:
        with reaching(self.location, "read"):
            place = self._place(path)
            return place.read_bytes() if most is None else read_bytes(place, most)

    def delete(self, path: str) -> None:
        with reaching(self.location, "delete from"):
            self._place(path).unlink(missing_ok=True)
        crash_point(f"{kind_of(path)}-deleted")

    def move(self, path: str, target: str) -> None:
        with reaching(self.location, "write to"):
            source, place = self._place(path), self._place(target)
            make_folder_durably(place.parent, partial(_crash_point_of, path))
            os.replace(source, place)
        crash_point("damaged-set-aside")

    def sizes(self, folder: str) -> dict[str, int]:
        found: dict[str, int] = {}
        with reaching(self.location, "read"):
            self._place(folder)
            self._sizes_into(found, folder)
        return found

    def _sizes_into(self, found: dict[str, int], folder: str) -> None:
        """Add the sizes of all files below a folder.

        Subfolders are listed again after each one, because the next may have been created in the meantime.
        """
        visited = ""
        while True:
            sizes, folders = self._scan(folder)
            if not visited:
                found.update(sizes)
            later = [name for name in folders if name > visited]
            if not later:
                return
            visited = min(later)
            self._sizes_into(found, _below(folder, visited))

    def _scan(self, folder: str) -> tuple[dict[str, int], list[str]]:
        sizes, folders = {}, []
        with contextlib.suppress(FileNotFoundError), os.scandir(self._root / folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                path = _below(folder, entry.name)
                if entry.is_dir(follow_symlinks=self.links_allowed):
                    folders.append(entry.name)
                    continue
                with contextlib.suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=self.links_allowed)
                    self._check_kind(path, found.st_mode)
                    sizes[path] = found.st_size
        return sizes, folders

    def _place(self, path: str) -> Path:
        """Return where a file is, or raise `UnsafePath` if it, or a folder on the way to it, is a link or special."""
        place = self._root
        for name in filter(None, path.split("/")):
            place = place / name
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                mode = (place.stat if self.links_allowed else place.lstat)().st_mode
                self._check_kind(str(place.relative_to(self._root)), mode)
        return place

    def _check_kind(self, path: str, mode: int) -> None:
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return
        named = f"{path} of the store at {self.location} is a"
        if stat.S_ISLNK(mode):
            raise UnsafePath(f"{named} symbolic link: put in its place what it leads to, or remove it")
        raise UnsafePath(f"{named} pipe, a socket or a device, and no file: remove it")

    def exists(self) -> bool:
        with reaching(self.location, "read"), contextlib.suppress(FileNotFoundError), os.scandir(self._root) as entries:
            return any(entries)
        return False

    def local_path(self, path: str) -> str | None:
        return str(self._root / path)

    def sweep(self) -> None:
        long_ago = time.time() - ABANDONED_SECONDS
        with reaching(self.location, "delete from"):
            for place, _, names in os.walk(self._root):
                for name in names:
                    file = Path(place, name)
                    # A store may be a folder that has other hidden files, such as a project with its .gitignore.
                    with contextlib.suppress(FileNotFoundError):
                        if is_aside(name) and file.lstat().st_mtime < long_ago:
                            file.unlink()
                            crash_point("abandoned-deleted")


def _crash_point_of(path: str, step: str) -> None:
    """Pass the crash point of a step of writing a file."""
    crash_point("folder-created" if step == "folder created" else f"{kind_of(path)}-{step}")


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
