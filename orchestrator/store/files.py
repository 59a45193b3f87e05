"""The files of a store: one interface over a folder (`local_files`) and an object store (`bucket_files`).

Paths are relative to the store's root, with `/` between their parts. `FileNotFoundError` is an expected answer, because
another process may have deleted the file a moment ago. Every other failure is raised as an `OrchError`.
"""

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol
from urllib.parse import unquote, urlsplit

from orch.core.errors import StoreFull, StoreUnreachable
from orch.core.reading import Refused
from orch.store.credentials import scrub

Data = bytes | Sequence[bytes | memoryview]
"""The contents of a file. Pieces are written one after the other, and never put together in memory."""


class Files(Protocol):
    """The files of a store."""

    location: str
    """The store's location without credentials, for messages."""

    @property
    def listed(self) -> Mapping[str, str]:
        """The checksums of files, by path, as far as the store has a list of its files."""

    def put(self, path: str, data: Data) -> None:
        """Create or replace a file atomically and durably."""

    def get(self, path: str, most: int | None = None) -> bytes:
        """Return the contents of a file, or raise `Refused` if it has more than `most` bytes."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""

    def move(self, path: str, target: str) -> None: ...

    def sizes(self, folder: str) -> dict[str, int]:
        """Return the size of every file at any depth below `folder`, by path; `""` is the root.

        Folders are visited in the order of their names, one after the other. A file that moves to a later folder in the
        meantime, and appears there before it disappears here, is thus never missed.
        """

    def exists(self) -> bool:
        """Return whether anything was ever written."""

    def local_path(self, path: str) -> str | None:
        """Return the path at which programs on this machine can open the file; None if they cannot."""

    def sweep(self) -> None:
        """Remove the temporary files that dead writers left."""


def open_files(location: str) -> Files:
    """Return the files of a store at a location. Nothing is created."""
    from orch.store.bundled import BUNDLED, BundledFiles
    from orch.store.local_files import LocalFiles

    if location == BUNDLED:
        return BundledFiles()
    if location.startswith("file://"):
        return LocalFiles(unquote(urlsplit(location).path), location)
    if "://" in location:
        from orch.store.bucket_files import RemoteFiles

        return RemoteFiles(location)
    return LocalFiles(location, location)


@contextlib.contextmanager
def reaching(location: str, what: str) -> Iterator[None]:
    """Turn system errors into an `OrchError` that names the store and the remedy."""
    try:
        yield
    except (FileNotFoundError, Refused):
        raise
    except (OSError, ValueError, NotImplementedError) as error:
        if getattr(error, "errno", None) == errno.ESTALE:
            # A network file system says this of a file that another machine has deleted.
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"the store at {location} is full: free space, then run orch resume") from None
        reason = " ".join(scrub(getattr(error, "strerror", None) or str(error)).split())
        raise StoreUnreachable(
            f"cannot {what} the store at {location} ({reason}):"
            " check the location, your access to it and the network, then try again"
        ) from None  # its cause may quote credentials
