"""The drivers that work on a store. Each keeps a file `drivers/<driver id>.json` with its heartbeat and its claims.

No decision compares the clocks of two machines. A driver on this machine lives as long as its process. One on another
machine, or whose file does not say when its process started, is alive if its file changes while this process looks, by
this process's own clock.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from orch.core.records import LeaseRecord
from orch.store.store import Store

DEAD_AFTER_SECONDS = 60.0
"""A driver whose file has not changed for so long counts as dead."""
SILENT_SECONDS = 15.0
"""A driver whose file was never seen to change in so long, three heartbeats, counts as dead."""
MOST_DRIVERS = 2**32
"""Numbers of drivers are below this: see `orch.store.attempts.make_attempt_id`."""
_KEYS = ("driver_id", "host", "pid", "started_at", "sweeps", "beat")


class Life(StrEnum):
    """The answer to whether a driver is alive, as far as it is known."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class DriverRecord:
    """A driver as its file in the store describes it."""

    driver_id: str
    host: str
    pid: int
    started_at: str
    sweeps: str
    beat: float
    """The time of its last heartbeat, by its own clock."""
    claims: frozenset[str]
    """Ids of the trials it is working on."""
    number: float | None = 0.0
    """Its number in the order of drivers: of two that start at the same moment, the lower goes on.

    None while it chooses one.
    """
    process_start: str | None = None
    """The kernel's start time of its process, because process ids are reused, most often after a restart."""
    counts: Mapping[str, Any] = field(default_factory=dict)
    """What it publishes about its run: counts, the time left, and the progress of its running trials."""
    pulse: str = ""
    """A text that differs from heartbeat to heartbeat, whatever the driver's clock does."""

    @property
    def alive(self) -> bool:
        """Whether it seems alive after one look at its file. `DriverWatch` looks repeatedly and compares no clocks."""
        if self.here and (not self.runs_here or self.is_surely_its_process):
            return self.runs_here
        return abs(time.time() - self.beat) <= DEAD_AFTER_SECONDS

    @property
    def here(self) -> bool:
        """Whether its process is, or was, on this machine."""
        return self.host == os.uname().nodename

    @property
    def runs_here(self) -> bool:
        """Whether its process is on this machine and has not ended."""
        return self.here and _process_runs(self.pid, self.process_start)

    @property
    def is_surely_its_process(self) -> bool:
        """Whether a process with its id cannot be another one: without a start time, ids may have been reused."""
        return self.process_start is not None

    @property
    def description(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.started_at} ({self.sweeps})"


@dataclass
class _Seen:
    """What a `DriverWatch` has seen of a driver's file."""

    pulse: str
    at: float
    """When it was first seen with this pulse."""
    changed: bool = False


class DriverWatch:
    """Decides which drivers of a store are alive, from what it sees of their files between one look and the next."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic):
        self._store, self._clock = store, clock
        self._seen: dict[str, _Seen] = {}

    def look(self) -> list[tuple[DriverRecord, Life]]:
        """Read the files of all drivers, and return what is now known of each driver."""
        records = read_drivers(self._store)
        return [(record, self._life(record)) for record in records]

    def silent_seconds(self, record: DriverRecord) -> float:
        """Return how long the file of a driver has been seen without a change."""
        seen = self._seen.get(record.driver_id)
        return 0.0 if seen is None else self._clock() - seen.at

    def _life(self, record: DriverRecord) -> Life:
        now = self._clock()
        seen = self._seen.setdefault(record.driver_id, _Seen(record.pulse, now))
        if seen.pulse != record.pulse:
            seen.pulse, seen.at, seen.changed = record.pulse, now, True
        if record.here and not record.runs_here:
            return Life.DEAD
        if record.here and record.is_surely_its_process:
            return Life.ALIVE
        if seen.changed:
            return Life.ALIVE if now - seen.at <= DEAD_AFTER_SECONDS else Life.DEAD
        return Life.UNKNOWN if now - seen.at <= SILENT_SECONDS else Life.DEAD


def read_drivers(store: Store) -> list[DriverRecord]:
    """Return every driver that has a file in the store, alive or dead."""
    found = []
    for values in store.list_json("drivers", LeaseRecord).values():
        known = {key: values[key] for key in _KEYS}
        claims = frozenset(values["claims"])
        start, counts = values.get("process_start"), values.get("counts") or {}
        pulse = f"{values.get('beats')} {values['beat']}"
        found.append(
            DriverRecord(
                **known, claims=claims, number=_number(values), process_start=start, counts=counts, pulse=pulse
            )
        )
    return found


def _number(values: Mapping[str, Any]) -> float | None:
    """Return the number that a driver's file has. Files of earlier versions have the time at which the driver began."""
    given = values.get("number", values.get("began", 0.0))
    if given is None:
        return None
    return float(given) if 0 <= float(given) < MOST_DRIVERS else 0.0  # false for NaN, too


def live_drivers(store: Store) -> list[DriverRecord]:
    """Return the drivers that seem alive after a single look at their files: see `DriverRecord.alive`."""
    return [driver for driver in read_drivers(store) if driver.alive]


def _process_runs(pid: int, start: str | None) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's, who may have been given the id of a process of ours
        pass
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
