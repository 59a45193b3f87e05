"""Reading the logs that drivers keep in a store: what a sweep did, line by line, during it or after."""

import json
import time
from collections.abc import Iterator
from typing import Any

from orch.core.errors import OrchError
from orch.running.lease import drivers
from orch.running.log import FLUSH_SECONDS
from orch.store import Store

_PREFIX, _SUFFIX = "logs/driver-", ".jsonl"


def newest_driver(store: Store) -> str:
    """The driver at work, of several the one that started last; if there is none, the one that was at work last."""
    alive = [driver for driver in drivers(store) if driver.alive]
    if alive:
        return max(alive, key=lambda driver: driver.started_at).driver_id
    ends = {}
    for path in store.list_files("logs"):
        if path.startswith(_PREFIX) and (lines := _lines(store, path)):
            ends[path.removeprefix(_PREFIX).removesuffix(_SUFFIX)] = str(_event(lines[-1]).get("at", ""))
    if not ends:
        raise OrchError(f"no sweep has left a log at {store.location}: check --store")
    return max(ends, key=ends.__getitem__)


def read_log(store: Store, driver_id: str) -> list[str]:
    """Its lines, each a JSON object; the oldest of a very long log are gone."""
    return _lines(store, f"{_PREFIX}{driver_id}{_SUFFIX}")


def follow_log(store: Store, driver_id: str) -> Iterator[str]:
    """The lines there are, and then each as it comes, until the driver has left."""
    last: str | None = None
    while True:
        # Asked before the log is read: what it wrote before it left is then there.
        gone = not any(driver.alive and driver.driver_id == driver_id for driver in drivers(store))
        lines = read_log(store, driver_id)
        known = len(lines) - lines[::-1].index(last) if last in lines else 0
        for line in lines[known:]:
            last = line
            yield line
        if gone:
            return
        time.sleep(FLUSH_SECONDS / 2)


def for_people(line: str) -> str:
    """
    >>> for_people('{"at": "2026-11-03T10:00:05.123+00:00", "event": "unit started", "trials": ["a1", "b2"]}')
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
    return (store.get_bytes(path) or b"").decode().splitlines()


def _event(line: str) -> dict[str, Any]:
    try:
        return json.loads(line)
    except ValueError:
        return {}
