"""Logs of drivers and workers: JSON lines, in the same store as the results."""

import functools
import json
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Protocol

from orch.core.errors import OrchError
from orch.core.printable import printable
from orch.core.reading import RECORD_BYTES, Refused, parse_json
from orch.core.shape import checked
from orch.store import Store, scrub
from orch.store.drivers import live_drivers

FLUSH_SECONDS = 5.0
MAX_LINES = 20_000
"""A log is rewritten as a whole, because object stores cannot append. The oldest lines are dropped first."""
_PREFIX, _SUFFIX = "logs/driver-", ".jsonl"


class Log(Protocol):
    """A log of events, wherever it is kept: in a store, or passed on to the process that keeps it."""

    def event(self, what: str, **fields: Any) -> None: ...

    def flush(self, now: bool = False) -> None: ...


class StoreLog:
    """A log that one process writes to a store, a few seconds after each event at the latest."""

    def __init__(self, store: Store, name: str, echo: bool = False):
        self._store, self._name, self._echo = store, name, echo
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._flushed_at = time.monotonic()
        self._pending = False

    def event(self, what: str, **fields: Any) -> None:
        line = scrub(json.dumps({"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": what} | fields))
        self._lines.append(line)
        self._pending = True
        if self._echo:
            print(printable(line), file=sys.stderr, flush=True)
        self.flush()

    def flush(self, now: bool = False) -> None:
        """Write the log if it has new lines and the last write was some seconds ago, or at once if `now`."""
        if self._pending and (now or time.monotonic() - self._flushed_at > FLUSH_SECONDS):
            self._flushed_at = time.monotonic()
            try:
                self._store.put_bytes(f"logs/{self._name}{_SUFFIX}", ("\n".join(self._lines) + "\n").encode())
            except OrchError:
                return  # a log must not end a sweep; the lines are kept for the next flush
            self._pending = False


def open_driver_log(store: Store, driver_id: str, echo: bool = False) -> StoreLog:
    """Open the log of a driver."""
    return StoreLog(store, f"driver-{driver_id}", echo)


def worker_log(store: Store) -> StoreLog:
    """Open the log of this worker process: one for each process and store."""
    return _worker_log(store.uri, os.getpid())


@functools.lru_cache(maxsize=4)
def _worker_log(location: str, pid: int) -> StoreLog:
    return StoreLog(Store.open(location), f"worker-{os.uname().nodename}-{pid}-{int(time.time())}")


def newest_driver(store: Store) -> str:
    """Return the id of the live driver that started last or, if none is alive, of the one that wrote its log last."""
    alive = live_drivers(store)
    if alive:
        return max(alive, key=lambda driver: driver.started_at).driver_id
    last_written = {}
    for path in store.list_files("logs"):
        if path.startswith(_PREFIX) and (lines := _lines(store, path)):
            last_written[path.removeprefix(_PREFIX).removesuffix(_SUFFIX)] = str(_event(lines[-1]).get("at", ""))
    if not last_written:
        raise OrchError(f"no sweep has left a log at {store.location}: check --store")
    return max(last_written, key=last_written.__getitem__)


def read_log(store: Store, driver_id: str) -> list[str]:
    """Return the lines of a driver's log, each a JSON object. The oldest lines of a very long log are gone."""
    return _lines(store, f"{_PREFIX}{driver_id}{_SUFFIX}")


def follow_log(store: Store, driver_id: str) -> Iterator[str]:
    """Yield the lines of a driver's log, then each new one, until the driver has exited."""
    last: str | None = None
    while True:
        # Checked before the log is read, so that the last lines are not missed.
        exited = not any(driver.driver_id == driver_id for driver in live_drivers(store))
        lines = read_log(store, driver_id)
        known = len(lines) - lines[::-1].index(last) if last in lines else 0
        for line in lines[known:]:
            last = line
            yield line
        if exited:
            return
        time.sleep(FLUSH_SECONDS / 2)


def readable_line(line: str) -> str:
    """Format a line of a log for a terminal.

    >>> readable_line('{"at": "2026-11-03T10:00:05.123+00:00", "event": "unit started", "trials": ["a1", "b2"]}')
    '2026-11-03 10:00:05  unit started  trials a1 b2'
    """
    event = _event(line)
    at, what = str(event.pop("at", "")), str(event.pop("event", line))
    facts = [f"{name.replace('_', ' ')} {_text(value)}" for name, value in event.items() if value not in ("", None, {})]
    return "  ".join([at[:19].replace("T", " "), what, ", ".join(facts)]).rstrip()


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return " ".join(f"{name} {_text(each)}" for name, each in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _lines(store: Store, path: str) -> list[str]:
    try:
        text = (store.get_bytes(path, RECORD_BYTES) or b"").decode(errors="replace")
    except Refused as reason:
        raise OrchError(f"{path} of the store at {store.location} cannot be shown ({reason}): delete it") from None
    return text.split("\n")[: -1 if text.endswith("\n") else None] if text else []


def _event(line: str) -> dict[str, Any]:
    try:
        return dict(checked(parse_json(line), dict[str, Any]))
    except Refused:
        return {}
