"""Who is working on a store: one small file per driver, with its heartbeat and the trials it has claimed.

A courtesy, not a lock: it keeps two people from doing the same work by accident. That every trial has one result
whatever happens is the store's doing, when it is read.
"""

import os
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orch.store import Store

BEAT_SECONDS = 5.0
DEAD_AFTER_SECONDS = 60.0


@dataclass(frozen=True)
class OtherDriver:
    driver_id: str
    host: str
    pid: int
    started_at: str
    sweeps: str
    beat: float
    claims: frozenset[str]
    process_start: str | None = None
    """When its process began, by the kernel's count: numbers of processes are given anew, soonest after a restart."""

    @property
    def alive(self) -> bool:
        if time.time() - self.beat > DEAD_AFTER_SECONDS:
            return False
        return self.host != os.uname().nodename or _process_runs(self.pid, self.process_start)

    @property
    def description(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.started_at} ({self.sweeps})"


def drivers(store: Store) -> list[OtherDriver]:
    """Every driver that has left a file, alive or not."""
    found = []
    for values in store.list_json("drivers").values():
        try:
            claims = frozenset(values["claims"])
            known = {key: values[key] for key in _KEYS}
            found.append(OtherDriver(**known, claims=claims, process_start=values.get("process_start")))
        except (KeyError, TypeError):
            continue
    return found


_KEYS = ("driver_id", "host", "pid", "started_at", "sweeps", "beat")


def _process_runs(pid: int, start: str | None) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    state, its_start = _process_state(pid)
    # A zombie has ended and only waits to be collected.
    return state != "Z" and (start is None or its_start in (None, start))


def _process_state(pid: int) -> tuple[str | None, str | None]:
    """A process's state and when it began, where the kernel tells."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None, None
    return fields[0], fields[19]


class Lease:
    """This driver's file, kept fresh by a thread; gone when the driver leaves in order."""

    def __init__(self, store: Store, sweeps: str):
        self._store, self._sweeps = store, sweeps
        self.driver_id = uuid.uuid4().hex[:12]
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._claims: set[str] = set()
        self._others: frozenset[str] = frozenset()
        self._num_others = 0
        self._lock = threading.Lock()
        self._leave = threading.Event()
        self.counts: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._beat, daemon=True, name="orch-heartbeat")

    def __enter__(self) -> "Lease":
        self._write()
        self._look_around()
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._leave.set()
        self._thread.join()
        self._store.delete(f"drivers/{self.driver_id}.json")

    @property
    def shared(self) -> bool:
        """Whether another driver is at work on this store."""
        return self._num_others > 0

    def claim(self, trial_ids: list[str]) -> bool:
        """Take these trials, unless another live driver has one of them."""
        if not self.shared:
            with self._lock:
                self._claims.update(trial_ids)
            return True
        # Trials may be shorter than a heartbeat: look, take, and tell at once. Whoever looks in between takes it too,
        # and one of the two results counts.
        self._look_around()
        taken = self._take(trial_ids)
        if taken:
            self._write()
        return taken

    def _take(self, trial_ids: list[str]) -> bool:
        with self._lock:
            if not self._others.isdisjoint(trial_ids):
                return False
            self._claims.update(trial_ids)
            return True

    def release(self, trial_ids: list[str]) -> None:
        with self._lock:
            self._claims.difference_update(trial_ids)

    def _beat(self) -> None:
        while not self._leave.wait(BEAT_SECONDS):
            try:
                self._write()
                self._look_around()
            except Exception:  # a store out of reach for a moment: the next beat may get through
                continue

    def _write(self) -> None:
        with self._lock:
            claims = sorted(self._claims)
        self._store.put_json(
            f"drivers/{self.driver_id}.json",
            {
                "driver_id": self.driver_id,
                "host": os.uname().nodename,
                "pid": os.getpid(),
                "process_start": _process_state(os.getpid())[1],
                "started_at": self._started_at,
                "sweeps": self._sweeps,
                "beat": time.time(),
                "claims": claims,
                "counts": self.counts,
            },
        )

    def _look_around(self) -> None:
        """What others have claimed. The files of the dead are cleared away."""
        claimed: set[str] = set()
        num_others = 0
        for other in drivers(self._store):
            if other.driver_id == self.driver_id:
                continue
            if other.alive:
                claimed |= other.claims
                num_others += 1
            elif time.time() - other.beat > 10 * DEAD_AFTER_SECONDS:
                self._store.delete(f"drivers/{other.driver_id}.json")
        with self._lock:
            self._others = frozenset(claimed)
            self._num_others = num_others
