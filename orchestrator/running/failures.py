"""How an attempt at a trial can end, and what is worth another try."""

import re
import traceback
from dataclasses import dataclass

from orch.core.errors import StoreFull, StoreUnreachable
from orch.store import Outcome, scrub

ENDED_WELL = {Outcome.FINISHED, Outcome.DIVERGED}
LEFT_OFF = {Outcome.INTERRUPTED, Outcome.PRUNED}
"""Without a result, and with nothing wrong."""
MOST_OUT_OF_MEMORY = 3
"""A trial killed for memory this often needs more than other trials leave it."""
MOST_LOST = 5
"""A worker lost this often with the same trial is the trial's doing: a crash in native code, say."""
MOST_FAILED = 5
"""A trial that fails in a new way each time is given up all the same."""
MOST_BLAMELESS = 100
"""Machines lost under one trial: reclaims do not come that often."""
SAME_IN_A_ROW = 20
"""That many attempts in a row with one error: not the trials, but the machine image or the code is broken."""


@dataclass(frozen=True)
class Failure:
    outcome: Outcome
    signature: str
    """What identical failures share: error type, place and message, less numbers and addresses."""
    message: str
    trace: str = ""
    written: bool = False
    """Whether the worker has put it on record itself; a worker that is gone could not."""
    blameless: bool = False
    """A machine was lost, to a reclaim or a power cut: it says nothing about the trial, however often it happens."""
    store_lost: bool = False
    """The store is full or out of reach: nothing that goes on could be kept."""


class TrialError(Exception):
    """What a worker raises when a trial failed: a failure that travels to the driver."""

    def __init__(self, failure: Failure):
        super().__init__(failure)

    @property
    def failure(self) -> Failure:
        return self.args[0]


def describe(error: BaseException) -> Failure:
    """An exception of a trial, with the place in the code it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "site-packages" not in frame.filename]
    place = f"{ours[-1].filename.rsplit('/', 2)[-1]}:{ours[-1].name}" if ours else "?"
    message = scrub((str(error).splitlines() or [""])[0][:500])  # before numbers go: a URI must still look like one
    signature = f"{type(error).__name__} in {place}: {_without_numbers(message)}"
    is_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    outcome = Outcome.OUT_OF_MEMORY if is_memory else Outcome.FAILED
    lost = isinstance(error, (StoreFull, StoreUnreachable))
    return Failure(outcome, signature, message, "".join(traceback.format_exception(error)), store_lost=lost)


def _without_numbers(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\d+", "#", text)[:200]


def worth_another_try(history: list[Failure]) -> bool:
    """Whether a trial that has failed like this, the last failure last, should be tried again now."""
    last = history[-1]
    if last.blameless:
        return len(history) <= MOST_BLAMELESS
    history = [failure for failure in history if not failure.blameless]
    if last.outcome in (Outcome.LOST, Outcome.OUT_OF_MEMORY):
        most = MOST_LOST if last.outcome == Outcome.LOST else MOST_OUT_OF_MEMORY
        return sum(failure.outcome == last.outcome for failure in history) <= most
    if last.outcome == Outcome.FAILED:
        # Every attempt gets a fresh worker process: what comes back identical is the trial's own.
        return len(history) < MOST_FAILED and sum(failure.signature == last.signature for failure in history) < 2
    return False
