"""The drivers that work on a store. Each keeps a file `drivers/<driver id>.json` with its heartbeat and its claims."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orch.core.records import LeaseRecord
from orch.store.store import Store

DEAD_AFTER_SECONDS = 60.0
"""A driver whose last heartbeat is older than this counts as dead."""
_KEYS = ("driver_id", "host", "pid", "started_at", "sweeps", "beat")


@dataclass(frozen=True)
class DriverRecord:
    """A driver as its file in the store describes it."""

    driver_id: str
    host: str
    pid: int
    started_at: str
    sweeps: str
    beat: float
    """The time of its last heartbeat."""
    claims: frozenset[str]
    """Ids of the trials it is working on."""
    began: float = 0.0
    """The time at which it took its lease: of two that start at the same moment, the first goes on."""
    process_start: str | None = None
    """The kernel's start time of its process, because process ids are reused, most often after a restart."""
    counts: Mapping[str, Any] = field(default_factory=dict)
    """What it says about its run: counts, the time left, and how far its running trials are."""

    @property
    def alive(self) -> bool:
        if time.time() - self.beat > DEAD_AFTER_SECONDS:
            return False
        return self.host != os.uname().nodename or _process_runs(self.pid, self.process_start)

    @property
    def ended_here(self) -> bool:
        """Whether its process was on this machine and has ended."""
        return self.host == os.uname().nodename and not _process_runs(self.pid, self.process_start)

    @property
    def description(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.started_at} ({self.sweeps})"


def read_drivers(store: Store) -> list[DriverRecord]:
    """Return every driver that has a file in the store, alive or dead."""
    found = []
    for values in store.list_json("drivers", LeaseRecord).values():
        known = {key: values[key] for key in _KEYS}
        claims = frozenset(values["claims"])
        start, counts = values.get("process_start"), values.get("counts") or {}
        began = float(values.get("began", 0.0))
        found.append(DriverRecord(**known, claims=claims, began=began, process_start=start, counts=counts))
    return found


def live_drivers(store: Store) -> list[DriverRecord]:
    """Return the drivers that are alive."""
    return [driver for driver in read_drivers(store) if driver.alive]


def _process_runs(pid: int, start: str | None) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    state, found_start = process_state(pid)
    # A zombie has ended and only waits for its parent to collect it.
    return state != "Z" and (start is None or found_start in (None, start))


def process_state(pid: int) -> tuple[str | None, str | None]:
    """Return the state letter and the start time of a process; None for both where the kernel does not say."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None, None
    return fields[0], fields[19]
