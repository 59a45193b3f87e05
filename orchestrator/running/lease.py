"""The lease of a driver: its file in the store, which shows other drivers that it is alive and which trials it trains.

A lease is not a lock. It keeps two drivers from training the same trials by accident. If they do, the store still
returns one result of each trial.
"""

import os
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from orch.core.errors import OrchError
from orch.core.interruption import given_up_after
from orch.store import Store
from orch.store.drivers import (
    DEAD_AFTER_SECONDS,
    MOST_DRIVERS,
    SILENT_SECONDS,
    DriverRecord,
    DriverWatch,
    Life,
    process_state,
)

BEAT_SECONDS = 5.0
FRESH_SECONDS = 1.0
"""Time for which a claim of another driver is believed without reading its file again."""
LOOK_SECONDS = 0.5
LEAVE_SECONDS = 5.0
"""Time that an interrupted driver has to remove its file from a store that may have stopped answering."""
LAST_NUMBER = "last_driver.json"
"""The file with the highest number that a driver of the store has had."""


class StoreHeld(OrchError):
    """Raised when another driver works on the store."""


class Lease:
    """This driver's file in the store. A thread renews it; it is deleted when the driver exits normally."""

    def __init__(
        self,
        store: Store,
        sweeps: str,
        clock: Callable[[], float] = time.monotonic,
        expects_others: bool = False,
    ):
        """With `expects_others`, claims are published at once from the start: others may begin at the same moment."""
        self._store, self._sweeps, self._clock = store, sweeps, clock
        self._expects_others = expects_others
        self._drivers = DriverWatch(store, clock)
        self.driver_id = uuid.uuid4().hex[:12]
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self.number: int | None = None
        """This driver's place in the order of drivers: higher than that of any driver before, unless both start at the
        same moment. Attempts are numbered by it, so that which result counts does not depend on anybody's clock."""
        self._num_beats = 0
        self._claims: set[str] = set()
        self._others: frozenset[str] = frozenset()
        self._elders: frozenset[str] = frozenset()
        """What drivers have claimed that come before this one."""
        self._read_at = -FRESH_SECONDS
        self._num_others = 0
        self._lock = threading.Lock()
        self._exiting = threading.Event()
        self.counts: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._beat, daemon=True, name="orch-heartbeat")

    def __enter__(self) -> "Lease":
        # Lamport's bakery: the file says first that a number is being chosen, so that a driver that chooses at the same
        # moment waits for it, and none of two overlooks the other.
        self._write()
        known = [0.0, *(other.number or 0.0 for other, _ in self._drivers.look())]  # its own file may be deleted
        last = self._store.get_json(LAST_NUMBER)
        if isinstance(last, int) and 0 <= last < MOST_DRIVERS:
            known.append(last)
        self.number = min(1 + int(max(known)), MOST_DRIVERS - 1)  # a file may have been edited
        self._store.put_json(LAST_NUMBER, self.number)
        self._write()
        self._read_others()
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._exiting.set()
        with given_up_after(LEAVE_SECONDS):
            self._thread.join()
            self._store.delete(f"drivers/{self.driver_id}.json")

    def check_alone(self, remedy: str) -> None:
        """Raise `StoreHeld` if another driver works on the store; `remedy` is what the user can do then.

        It waits until it is known of every other driver whether it is alive. Once this driver has its file in the
        store, it gives way only to those with a lower number: of several that start at the same moment, one goes on.
        """
        patience = self._clock() + SILENT_SECONDS
        while True:
            lives = [(other, life) for other, life in self._drivers.look() if self._comes_before(other)]
            alive = [other for other, life in lives if life is Life.ALIVE]
            # One that has been choosing its number for so long is stuck, and may still go on.
            if holders := [other for other in alive if other.number is not None or self._clock() > patience]:
                names = "; ".join(other.description for other in holders)
                raise StoreHeld(f"{self._store.location} is being worked on by {names}: {remedy}")
            if not alive and not any(life is Life.UNKNOWN for _, life in lives):
                return
            time.sleep(LOOK_SECONDS)

    def _comes_before(self, other: DriverRecord) -> bool:
        if other.driver_id == self.driver_id:
            return False
        if self.number is None or other.number is None:
            return True
        return (other.number, other.driver_id) < (self.number, self.driver_id)

    @property
    def shared(self) -> bool:
        """Whether another live driver works on this store."""
        return self._num_others > 0

    def claim(self, trial_ids: list[str]) -> bool:
        """Claim these trials, unless another live driver has one of them. Return whether they were claimed."""
        published = self.shared or self._expects_others
        if published:
            # Every unit that waits for others asks again and again, and each time reads a file of every driver.
            if time.monotonic() - self._read_at < FRESH_SECONDS and not self._others.isdisjoint(trial_ids):
                return False
            self._read_others()
        with self._lock:
            if not self._others.isdisjoint(trial_ids):
                return False
            self._claims.update(trial_ids)
        if published:
            # Trials may be shorter than a heartbeat, so the claim is published at once. Another driver may have claimed
            # the same trials since the others were read: then the older of the two keeps them.
            self._write()
            self._read_others()
            if not self._elders.isdisjoint(trial_ids):
                self.release(trial_ids)
                return False
        return True

    def release(self, trial_ids: list[str]) -> None:
        with self._lock:
            self._claims.difference_update(trial_ids)

    def _beat(self) -> None:
        while not self._exiting.wait(BEAT_SECONDS):
            try:
                self._write()
                self._read_others()
            except Exception:  # the store may be unreachable for a moment: the next heartbeat tries again
                continue

    def _write(self) -> None:
        with self._lock:
            claims = sorted(self._claims)
            self._num_beats += 1
        self._store.put_json(
            f"drivers/{self.driver_id}.json",
            {
                "driver_id": self.driver_id,
                "host": os.uname().nodename,
                "pid": os.getpid(),
                "process_start": process_state(os.getpid())[1],
                "started_at": self._started_at,
                "sweeps": self._sweeps,
                "number": self.number,
                "beat": time.time(),
                "beats": self._num_beats,
                "claims": claims,
                "counts": self.counts,
            },
        )

    def _read_others(self) -> None:
        """Read what other drivers have claimed, and delete the files that drivers left behind when they were killed."""
        claimed: set[str] = set()
        by_elders: set[str] = set()
        num_others = 0
        for other, life in self._drivers.look():
            if other.driver_id == self.driver_id:
                continue
            if life is not Life.DEAD:
                claimed |= other.claims
                if self._comes_before(other):
                    by_elders |= other.claims
                num_others += 1
            # A driver that only looks dead, because it runs in a container of the same name, writes within this time.
            elif self._drivers.silent_seconds(other) > (SILENT_SECONDS if other.here else DEAD_AFTER_SECONDS):
                self._store.delete(f"drivers/{other.driver_id}.json")
        with self._lock:
            self._others, self._elders = frozenset(claimed), frozenset(by_elders)
            self._read_at = time.monotonic()
            self._num_others = num_others
