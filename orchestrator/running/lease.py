"""The lease of a driver: its file in the store, which shows other drivers that it is alive and which trials it trains.

A lease is not a lock. It keeps two drivers from training the same trials by accident. If they do, the store still
returns one result of each trial.
"""

import os
import threading
import time
import uuid
from datetime import UTC, datetime
from typing import Any

from orch.store import Store
from orch.store.drivers import DEAD_AFTER_SECONDS, process_state, read_drivers

BEAT_SECONDS = 5.0
FRESH_SECONDS = 1.0
"""Time for which a claim of another driver is believed without reading its file again."""
_MISSED_BEATS = 3
"""Heartbeats that a driver on this machine has missed before its file is deleted: one that only looks dead, because
it runs in a container, writes within the time."""


class Lease:
    """This driver's file in the store. A thread renews it; it is deleted when the driver exits normally."""

    def __init__(self, store: Store, sweeps: str, expects_others: bool = False):
        """With `expects_others`, claims are published at once from the start: others may begin at the same moment."""
        self._store, self._sweeps, self._expects_others = store, sweeps, expects_others
        self.driver_id = uuid.uuid4().hex[:12]
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self.began = 0.0
        self._claims: set[str] = set()
        self._others: frozenset[str] = frozenset()
        self._elders: frozenset[str] = frozenset()
        """What drivers have claimed that took their lease before this one."""
        self._read_at = -FRESH_SECONDS
        self._num_others = 0
        self._lock = threading.Lock()
        self._exiting = threading.Event()
        self.counts: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._beat, daemon=True, name="orch-heartbeat")

    def __enter__(self) -> "Lease":
        self.began = time.time()
        self._write()
        self._read_others()
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._exiting.set()
        self._thread.join()
        self._store.delete(f"drivers/{self.driver_id}.json")

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
        self._store.put_json(
            f"drivers/{self.driver_id}.json",
            {
                "driver_id": self.driver_id,
                "host": os.uname().nodename,
                "pid": os.getpid(),
                "process_start": process_state(os.getpid())[1],
                "started_at": self._started_at,
                "sweeps": self._sweeps,
                "began": self.began,
                "beat": time.time(),
                "claims": claims,
                "counts": self.counts,
            },
        )

    def _read_others(self) -> None:
        """Read what other drivers have claimed, and delete the files that drivers left behind when they were killed."""
        claimed: set[str] = set()
        by_elders: set[str] = set()
        num_others = 0
        for other in read_drivers(self._store):
            if other.driver_id == self.driver_id:
                continue
            if other.alive:
                claimed |= other.claims
                if (other.began, other.driver_id) < (self.began, self.driver_id):
                    by_elders |= other.claims
                num_others += 1
            elif time.time() - other.beat > (
                _MISSED_BEATS * BEAT_SECONDS if other.ended_here else 10 * DEAD_AFTER_SECONDS
            ):
                self._store.delete(f"drivers/{other.driver_id}.json")
        with self._lock:
            self._others, self._elders = frozenset(claimed), frozenset(by_elders)
            self._read_at = time.monotonic()
            self._num_others = num_others
