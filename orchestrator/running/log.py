"""Structured logs of drivers and workers: JSON lines, kept in the store beside the results they explain."""

import functools
import json
import os
import time
from collections import deque
from datetime import UTC, datetime
from typing import Any

from orch.core.errors import OrchError
from orch.store import Store, scrub

FLUSH_SECONDS = 5.0
MOST_LINES = 20_000
"""A log is rewritten whole, because object stores cannot append: the oldest lines go first."""


class StoreLog:
    def __init__(self, store: Store, name: str, echo: bool = False):
        self._store, self._name, self._echo = store, name, echo
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._flushed_at = time.monotonic()
        self._pending = False

    def event(self, what: str, **fields: Any) -> None:
        line = scrub(json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": what} | fields))
        self._lines.append(line)
        self._pending = True
        if self._echo:
            import sys

            print(line, file=sys.stderr, flush=True)
        self.flush()

    def flush(self, now: bool = False) -> None:
        if self._pending and (now or time.monotonic() - self._flushed_at > FLUSH_SECONDS):
            self._flushed_at = time.monotonic()
            try:
                self._store.put_bytes(f"logs/{self._name}.jsonl", ("\n".join(self._lines) + "\n").encode())
            except OrchError:
                return  # a log must not be what ends a sweep; the lines are kept for the next time
            self._pending = False


@functools.lru_cache(maxsize=4)
def _worker_log(location: str, pid: int) -> StoreLog:
    return StoreLog(Store.open(location), f"worker-{os.uname().nodename}-{pid}-{int(time.time())}")


def worker_log(store: Store) -> StoreLog:
    """One log per worker process and store."""
    return _worker_log(store.uri, os.getpid())
