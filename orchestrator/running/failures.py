"""Failures of attempts at trials, and the rule for another try."""

import re
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orch.core.errors import InvalidSettings, StoreFull, StoreUnreachable
from orch.store import Outcome, scrub
from orch.store.attempts import AttemptError
from orch.usercode.loading import CODE_FOLDER

if TYPE_CHECKING:
    from orch.running.quarantine import Place

MOST_OUT_OF_MEMORY = 3
"""A trial that is killed for memory more often than this is given up: other trials leave it too little memory."""
MOST_LOST = 5
"""A trial whose worker is lost more often than this is given up: it is the cause, as by a crash in native code."""
MOST_FAILED = 5
"""A trial that has failed this often is given up, even if each failure was different."""
MOST_PLACES = 3
"""A trial that has failed with the same error in this many places is given up, or in all places if there are fewer."""
MOST_BLAMELESS = 100
"""A trial is given up after this many lost machines: the cloud does not reclaim machines that often."""
SAME_IN_A_ROW = 20
"""After this many attempts in a row with one error, the machine image or the code is broken and not the trials."""


@dataclass(frozen=True)
class Failure:
    """The reason for which an attempt failed."""

    outcome: Outcome
    signature: str
    """Error type, place and message without numbers, which failures of the same cause have in common."""
    message: str
    trace: str = ""
    error_type: str | None = None
    """The exception's class; None for a worker that was lost without one."""
    written: bool = False
    """Whether the worker has written the end of its attempts to the store; a lost worker could not."""
    blameless: bool = False
    """Whether a machine was lost, to a reclaim or a power cut, which says nothing about the trial."""
    deterministic: bool = False
    """Whether a user's code raised an error of its own, which every other try would raise again."""
    store_lost: bool = False
    """Whether the store is full or unreachable, so that no result could be written."""
    finished: tuple[dict[str, Any], ...] = ()
    """Summaries of the unit's trials that finished before and were not reported yet."""
    place: "Place | None" = None
    """Where the attempt failed; None if that is not known."""

    @property
    def error(self) -> AttemptError:
        """The columns of an attempt's end row that describe the failure."""
        return AttemptError(
            error_type=self.error_type,
            error_signature=self.signature,
            error_message=self.message,
            traceback=self.trace,
        )


class TrialError(Exception):
    """Raised by a worker when a trial failed; it carries the failure to the driver."""

    def __init__(self, failure: Failure):
        super().__init__(failure)

    @property
    def failure(self) -> Failure:
        failure: Failure = self.args[0]
        return failure


class ChangedState(Exception):
    """Raised when the code of a pack has changed the global state, so that its trials may have changed each other."""


def describe(error: BaseException) -> Failure:
    """Describe an exception that a trial raised, with the place in our code or user code that raised it."""
    if isinstance(error, ChangedState):  # nobody's failure: the driver tries the trials again, one by one
        return Failure(Outcome.INTERRUPTED, "changed global state", str(error), deterministic=True)
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "site-packages" not in frame.filename]
    place = f"{ours[-1].filename.rsplit('/', 2)[-1]}:{ours[-1].name}" if ours else "?"
    # Credentials are removed before numbers, so that those in a URI are recognised.
    message = scrub((str(error).splitlines() or [""])[0][:500])
    without_numbers = re.sub(r"0x[0-9a-f]+|\d+", "#", message)[:200]
    signature = f"{type(error).__name__} in {place}: {without_numbers}"
    is_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    outcome = Outcome.OUT_OF_MEMORY if is_memory else Outcome.FAILED
    return Failure(
        outcome,
        signature,
        message,
        "".join(traceback.format_exception(error)),
        error_type=type(error).__name__,
        deterministic=_is_deterministic(error, frames),
        store_lost=isinstance(error, (StoreFull, StoreUnreachable)),
    )


def _is_deterministic(error: BaseException, frames: traceback.StackSummary) -> bool:
    """Return whether an error is a user's own: not one of memory, files, the store or a GPU, which may pass."""
    if isinstance(error, InvalidSettings):
        return True
    may_pass = isinstance(error, (MemoryError, OSError, StoreFull, StoreUnreachable))
    may_pass |= type(error).__name__ in ("OutOfMemoryError", "AcceleratorError")
    may_pass |= re.search(r"cuda|cublas|cudnn|nccl|out of memory", str(error), re.IGNORECASE) is not None
    return not may_pass and any(frame.filename.startswith(CODE_FOLDER) for frame in frames)


def worth_another_try(failures: list[Failure], num_places: int = 1) -> bool:
    """Return whether a trial with these failures, oldest first, should be tried again now.

    `num_places` is the number of GPUs, or of machines without, on which it can be tried.
    """
    last = failures[-1]
    if last.blameless:
        return len(failures) <= MOST_BLAMELESS
    blamed = [failure for failure in failures if not failure.blameless]
    if last.outcome in (Outcome.LOST, Outcome.OUT_OF_MEMORY):
        most = MOST_LOST if last.outcome == Outcome.LOST else MOST_OUT_OF_MEMORY
        return sum(failure.outcome == last.outcome for failure in blamed) <= most
    if last.outcome == Outcome.FAILED and last.deterministic:
        return False
    if last.outcome == Outcome.FAILED:
        # Every attempt has a new worker process, so an error that comes back is caused by the trial itself, unless it
        # comes back where it was: then the place may be sick. Two places may be.
        alike = [failure for failure in blamed if failure.signature == last.signature]
        known = {failure.place for failure in alike if failure.place is not None}
        num_different = len(known) + sum(failure.place is None for failure in alike)
        num_alike = len(alike) if num_places == 1 else num_different
        return len(blamed) < MOST_FAILED and num_alike < max(2, min(num_places, MOST_PLACES))
    return False
