"""Attempts and drivers written to a store by tests."""

import datetime
import os
import time
from typing import Any

from orch.store import Store

NOW = datetime.datetime(2026, 11, 3, tzinfo=datetime.UTC)


def write_attempt(
    store: Store,
    attempt_id: str,
    event: str,
    minute: float,
    outcome: str | None = None,
    trial_id: str = "trial",
    driver_id: str = "driver",
) -> None:
    """Write an event of an attempt, this many minutes after `NOW`."""
    at = NOW + datetime.timedelta(minutes=minute)
    row = {"attempt_id": attempt_id, "trial_id": trial_id, "driver_id": driver_id, "event": event, "at": at}
    signature = None if outcome is None else f"{outcome} signature"
    store.write("attempts", [row | {"outcome": outcome, "error_signature": signature}])


def write_driver(store: Store, driver_id: str = "driver", **values: Any) -> None:
    """Write the record of a driver that is alive, or of another one if `values` say so."""
    record = {
        "driver_id": driver_id, "host": os.uname().nodename, "pid": os.getpid(), "started_at": "2026-11-03",
        "sweeps": "main", "beat": time.time(), "claims": [],
    } | values  # fmt: skip
    store.put_json(f"drivers/{driver_id}.json", record)
