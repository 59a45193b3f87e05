"""Copies of a remote store's parts on this machine, so that no process fetches a part that another has fetched.

Parts never change, so a copy is right as long as its size is. `ORCH_CACHE` says where (default: `~/.cache/orch`).
"""

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Container
from pathlib import Path

from orch.store.part import Part

_FRESH_SECONDS = 600


class PartCache:
    def __init__(self, location: str):
        base = Path(os.environ.get("ORCH_CACHE") or "~/.cache/orch").expanduser()
        self._root = base / "parts" / hashlib.sha256(location.encode()).hexdigest()[:16]

    def find(self, part: Part) -> str | None:
        """Where the copy is, if there is one."""
        path = self._root / part.path
        with contextlib.suppress(OSError):
            if path.stat().st_size == part.size:
                return str(path)
        return None

    def keep(self, part: Part, data: bytes) -> None:
        """A machine that cannot keep a copy (no room, no home) is slower and otherwise fine."""
        path = self._root / part.path
        aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            aside.write_bytes(data)
            os.replace(aside, path)
        except OSError:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)

    def drop(self, part: Part) -> None:
        with contextlib.suppress(OSError):
            (self._root / part.path).unlink(missing_ok=True)

    def prune(self, table: str, present: Container[str]) -> None:
        """Remove the copies of parts that are gone. Fresh ones stay: another process may know of newer parts."""
        long_ago = time.time() - _FRESH_SECONDS
        for path in (self._root / table).rglob("*.parquet*"):
            with contextlib.suppress(OSError):
                if path.relative_to(self._root).as_posix() not in present and path.stat().st_mtime < long_ago:
                    path.unlink()
