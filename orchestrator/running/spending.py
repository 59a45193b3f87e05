"""The cost of runs: the price of the machines that are alive, added up by each driver and kept in the store.

The record of a driver outlives it, so `orch status` adds up all of them. A price that is not known is None, never 0.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orch.core.errors import OrchError
from orch.running.lease import Lease
from orch.running.options import RunOptions
from orch.store import Store
from orch.store.drivers import DriverRecord, live_drivers

FOLDER = "spending"
COUNT_SECONDS = 10.0
"""Seconds between two looks at which machines are alive."""
KEEP_SECONDS = 30.0
"""Seconds between two records of what was spent."""


class Spending:
    """The dollars that one driver has spent so far. Without a price it counts nothing."""

    def __init__(self, store: Store, lease: Lease, options: RunOptions, machines: str):
        self._store, self._lease, self.machines = store, lease, machines
        self._price, self._limit = options.dollars_per_hour, options.max_dollars
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._counted_at = self._began = time.monotonic()
        self._looked_at = self._kept_at = -KEEP_SECONDS
        self._per_hour: float | None = None
        self.dollars: float | None = None

    def count(self) -> None:
        """Add what the machines cost since the last look, and keep a record from time to time."""
        now = time.monotonic()
        if self._price is None or now - self._looked_at < COUNT_SECONDS:
            return
        self._looked_at = now
        self._add(now)
        if now - self._kept_at >= KEEP_SECONDS:
            self._keep(now)

    def close(self) -> None:
        """Count up to now, and keep the last record."""
        if self._price is not None:
            now = time.monotonic()
            self._add(now)
            self._keep(now)

    @property
    def is_used_up(self) -> bool:
        """Whether the limit of dollars is reached."""
        return self._limit is not None and self.dollars is not None and self.dollars >= self._limit

    @property
    def reason(self) -> str:
        """Why the run stops when the limit is reached."""
        return f"--max-dollars is reached, about ${self.dollars:,.2f} were spent"

    def _add(self, now: float) -> None:
        """Add the cost of the time since it was last known, at the price of the machines that are alive now."""
        assert self._price is not None
        try:
            price = self._price()
        except Exception:  # the cluster's head may be busy or gone: the last price counts on
            price = None
        if price is not None:
            self._per_hour = price / self._num_sharing()
        if self._per_hour is not None:
            self.dollars = (self.dollars or 0.0) + self._per_hour * (now - self._counted_at) / 3600
            self._counted_at = now

    def _num_sharing(self) -> int:
        """Count the live drivers on the same machines, this one included: they share the cost."""
        if not self._lease.shared:
            return 1
        others = (other for other in live_drivers(self._store) if other.driver_id != self._lease.driver_id)
        return 1 + sum(bool(other.counts.get("machines") == self.machines) for other in others)

    def _keep(self, now: float) -> None:
        record = {
            "driver_id": self._lease.driver_id,
            "started_at": self._started_at,
            "seconds": now - self._began,
            "dollars": self.dollars,
            "per_hour": self._per_hour,
        }
        try:
            self._store.put_json(f"{FOLDER}/{self._lease.driver_id}.json", record)
            self._kept_at = now
        except OrchError:  # the next record contains this one
            return


@dataclass(frozen=True)
class Spent:
    """The dollars that runs on a store have spent, as far as their prices are known."""

    dollars: float | None = None
    """None if no run had a price."""
    runs: int = 0
    """The number of runs whose dollars are counted."""
    per_hour: float | None = None
    """Dollars per hour of the drivers that are alive; None if there is none, or one has no price."""
    projected: float | None = None
    """Dollars when everything to do is done; None if a driver's price or the time left is not known."""


def read_spending(store: Store, alive: Iterable[DriverRecord], seconds_left: float | None) -> Spent:
    """Add up what all drivers of a store have recorded, and project it to the end of the work."""
    records: dict[str, dict[str, Any]] = {str(each["driver_id"]): each for each in store.list_json(FOLDER).values()}
    known = [each["dollars"] for each in records.values() if each["dollars"] is not None]
    if not known:
        return Spent()
    rates = [records.get(driver.driver_id, {}).get("per_hour") for driver in alive]
    per_hour = sum(rate for rate in rates if rate is not None) if rates and None not in rates else None
    projected = None if per_hour is None or seconds_left is None else sum(known) + per_hour * seconds_left / 3600
    return Spent(dollars=sum(known), runs=len(known), per_hour=per_hour, projected=projected)
