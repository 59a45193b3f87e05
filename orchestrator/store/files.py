"""Where a store's files are: one small interface over a local folder (`local`) and an object store (`remote`).

Paths are relative to the store's root, with `/` between their parts. `FileNotFoundError` is an answer, not a failure:
another process may have deleted what was there a moment ago. Every other failure is one of our errors.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Protocol
from urllib.parse import unquote, urlsplit

from orch.core.errors import StoreFull, StoreUnreachable
from orch.store.credentials import scrub


class Files(Protocol):
    location: str
    """Fit to be shown: without credentials."""

    def put(self, path: str, data: bytes, kind: str = "file") -> None:
        """Create or replace a file. It is there as a whole or not at all, whenever this process dies, and when this
        returns it is there for good. The crash points `<kind>-written` and `<kind>-renamed` are around that moment."""

    def get(self, path: str) -> bytes: ...

    def delete(self, path: str) -> None:
        """Deleting what is not there is fine."""

    def move(self, path: str, target: str) -> None: ...

    def sizes(self, folder: str) -> dict[str, int]:
        """The size of every file at any depth below `folder`, by path.

        Folders are visited in the order of their names, each one after the whole of the one before. A file that moves
        to a later folder meanwhile, by appearing there before it vanishes here, is thus never missed.
        """

    def exists(self) -> bool:
        """Whether anything was ever written."""

    def local_path(self, path: str) -> str | None:
        """Where this machine's programs can open the file, if they can."""

    def sweep(self, folder: str) -> None:
        """Remove what writers that died left behind in `folder`."""


def open_files(location: str) -> Files:
    """Opens nothing yet on a local file system, and creates nothing."""
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
    """Turns what the system says into a sentence that names the store and the remedy."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.ESTALE:
            # A network file system's word for a file that another machine has deleted.
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"the store at {location} is full: free space, then run orch resume") from None
        reason = " ".join(scrub(getattr(error, "strerror", None) or str(error)).split())
        raise StoreUnreachable(
            f"cannot {what} the store at {location} ({reason}):"
            " check the location, your access to it and the network, then try again"
        ) from None  # its cause may quote credentials
