"""Copies of a remote store's parts on this machine, so that no process fetches a part that another has fetched.

Parts never change, so a copy is valid if its size is right. They are kept in the folder `ORCH_CACHE`, by default
`~/.cache/orch`.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Container
from pathlib import Path

from orch.core.atomic_write import write_atomically
from orch.store.part import Part

_FRESH_SECONDS = 600


class PartCache:
    """The copies of one store's parts."""

    def __init__(self, location: str):
        base = Path(os.environ.get("ORCH_CACHE") or "~/.cache/orch").expanduser()
        self._root = base / "parts" / hashlib.sha256(location.encode()).hexdigest()[:16]

    def find(self, part: Part) -> str | None:
        """Return the path of the copy of a part, if there is one."""
        path = self._root / part.path
        with contextlib.suppress(OSError):
            if path.stat().st_size == part.size:
                return str(path)
        return None

    def keep(self, part: Part, data: bytes) -> None:
        """Keep a copy of a part. Errors such as a full disk are ignored: they only make reading slower."""
        path = self._root / part.path
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data)

    def drop(self, part: Part) -> None:
        """Remove the copy of a part."""
        with contextlib.suppress(OSError):
            (self._root / part.path).unlink(missing_ok=True)

    def prune(self, table: str, present: Container[str]) -> None:
        """Remove the copies of parts that are not `present`, except recent ones, which other processes may need."""
        long_ago = time.time() - _FRESH_SECONDS
        for path in (self._root / table).rglob("*.parquet*"):
            with contextlib.suppress(OSError):
                if path.relative_to(self._root).as_posix() not in present and path.stat().st_mtime < long_ago:
                    path.unlink()
