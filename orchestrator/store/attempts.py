"""Rows of the table `attempts`. An attempt is one try at one trial: it has a row for its start and one for its end."""

import enum
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from orch.store.credentials import scrub


class Event(enum.StrEnum):
    START = "start"
    END = "end"


class Outcome(enum.StrEnum):
    FINISHED = "finished"
    DIVERGED = "diverged"
    FAILED = "failed"
    LOST = "lost"
    INTERRUPTED = "interrupted"
    PRUNED = "pruned"
    """A search stopped the trial because others did better. Its checkpoint stays, so that training can continue."""
    OUT_OF_MEMORY = "out_of_memory"
    HUNG = "hung"


ENDED_WELL = frozenset({Outcome.FINISHED, Outcome.DIVERGED})
"""Outcomes of attempts that have a result."""
LEFT_OFF = frozenset({Outcome.INTERRUPTED, Outcome.PRUNED})
"""Outcomes of attempts that were stopped on purpose, without a result and without an error."""


NUMBERED = "^n[0-9a-f]{8}-[0-9a-f]{8}-"
"""Pattern of the attempt ids that `make_attempt_id` makes. Those of earlier versions are hexadecimal throughout."""


def make_attempt_id(driver_number: int, attempt_number: int) -> str:
    """Make an id that sorts after those of all earlier drivers, and of this driver's earlier attempts.

    Of several results of a trial, that of the smallest id counts. So a result never gives way to a later driver's, and
    nobody's clock decides.
    """
    return f"n{driver_number:08x}-{attempt_number:08x}-{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptError:
    """The columns of an end row that describe what went wrong."""

    error_type: str | None
    """The exception's class; None if no exception was seen, as when a worker is lost."""
    error_signature: str
    error_message: str
    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The identity of an attempt. Drivers and workers make all their rows of `attempts` with it."""

    attempt_id: str
    trial_id: str
    driver_id: str
    device: str

    def start_row(self) -> dict[str, Any]:
        """Return the row that a worker writes before it begins."""
        return self._row(Event.START) | _this_worker()

    def end_row(
        self, outcome: Outcome, step: int | None, error: AttemptError | None = None, *, by_driver: bool = False
    ) -> dict[str, Any]:
        """Return the row that ends the attempt.

        The driver writes it (`by_driver`) for a worker that is gone. The start row names that worker.
        """
        row = self._row(Event.END) | {"outcome": str(outcome), "step": step}
        row |= {"host": os.uname().nodename} if by_driver else _this_worker()
        return row | ({} if error is None else asdict(error))

    def _row(self, event: Event) -> dict[str, Any]:
        return asdict(self) | {"event": str(event), "at": datetime.now(UTC)}


def _this_worker() -> dict[str, Any]:
    host, pid = os.uname().nodename, os.getpid()
    return {"host": host, "pid": pid, "worker": f"{host}:{pid}"}


_TEXTS = ("error_signature", "error_message", "traceback")


def checked_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of `attempts` with its event and outcome checked and with credentials hidden in its texts."""
    row = dict(values)
    row["event"] = str(Event(row["event"]))
    if row.get("outcome") is not None:
        row["outcome"] = str(Outcome(row["outcome"]))
    for name in _TEXTS:
        if row.get(name) is not None:
            row[name] = scrub(row[name])
    return row
