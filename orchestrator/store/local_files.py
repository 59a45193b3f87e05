"""The files of a store in a folder, on this machine or on a network file system."""

import contextlib
import os
import time
from functools import partial
from pathlib import Path

from orch.core.atomic_write import make_folder_durably, write_atomically
from orch.store.crash_points import crash_point, kind_of
from orch.store.files import Data, reaching

ABANDONED_SECONDS = 3600
"""A temporary file this old has no living writer: writing one takes seconds."""


class LocalFiles:
    """Files below a folder. See `orch.store.files.Files` for what each method promises."""

    def __init__(self, root: str, location: str):
        self.location = location
        self._root = Path(root).expanduser().absolute()

    def put(self, path: str, data: Data) -> None:
        with reaching(self.location, "write to"):
            try:
                write_atomically(self._root / path, data, durable=True, passing=partial(_crash_point_of, path))
            except FileNotFoundError as error:
                raise OSError("its folder is being deleted") from error

    def get(self, path: str) -> bytes:
        with reaching(self.location, "read"):
            return (self._root / path).read_bytes()

    def delete(self, path: str) -> None:
        with reaching(self.location, "delete from"):
            (self._root / path).unlink(missing_ok=True)
        crash_point(f"{kind_of(path)}-deleted")

    def move(self, path: str, target: str) -> None:
        with reaching(self.location, "write to"):
            make_folder_durably((self._root / target).parent, partial(_crash_point_of, path))
            os.replace(self._root / path, self._root / target)
        crash_point("part-set-aside")

    def sizes(self, folder: str) -> dict[str, int]:
        found: dict[str, int] = {}
        with reaching(self.location, "read"):
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

    def sweep(self) -> None:
        long_ago = time.time() - ABANDONED_SECONDS
        with reaching(self.location, "delete from"):
            for place, _, names in os.walk(self._root):
                for name in names:
                    file = Path(place, name)
                    with contextlib.suppress(FileNotFoundError):
                        if name.startswith(".") and file.stat().st_mtime < long_ago:
                            file.unlink()
                            crash_point("abandoned-deleted")


def _crash_point_of(path: str, step: str) -> None:
    """Pass the crash point of a step of writing a file."""
    crash_point("folder-created" if step == "folder created" else f"{kind_of(path)}-{step}")
