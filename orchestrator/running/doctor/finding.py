"""The finding of a check, and the two ways in which a check says that it did not pass."""

import enum
from dataclasses import dataclass


class CheckState(enum.StrEnum):
    RUNNING = "running"
    PASS = "pass"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    state: CheckState
    detail: str
    seconds: float


class Skipped(Exception):
    """Raised by a check that does not apply here; the message says why."""


class Failed(Exception):
    """Raised by a check that found something wrong."""
