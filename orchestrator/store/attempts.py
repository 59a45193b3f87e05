"""An attempt: one try at one trial, recorded by a row when it starts and another when it ends."""

import enum
from collections.abc import Mapping
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
    """Given up by a search, for others did better; its checkpoint stays, so that whoever asks for it goes on."""
    OUT_OF_MEMORY = "out_of_memory"
    HUNG = "hung"


_TEXTS = ("error_signature", "error_message", "traceback")


def attempt_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `attempts`, checked, and free of credentials that an error may have quoted."""
    row = dict(values)
    row["event"] = str(Event(row["event"]))
    if row.get("outcome") is not None:
        row["outcome"] = str(Outcome(row["outcome"]))
    for name in _TEXTS:
        if row.get(name) is not None:
            row[name] = scrub(row[name])
    return row
