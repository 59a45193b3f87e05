"""The common part of runs of sweeps and searches: stopping on Ctrl-C or in time, and compaction of the store."""

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

from orch.core.interruption import given_up_after, leave, note
from orch.running.display import Display
from orch.running.driver_log import StoreLog, open_driver_log
from orch.running.lease import Lease
from orch.running.options import RunOptions
from orch.running.quarantine import Place, published
from orch.running.reclaim import reclaim_notice
from orch.running.spending import Spending
from orch.running.units import Unit
from orch.store import Store

COMPACT_SECONDS = 30.0
COMPACT_PARTS = 256
TIDY_SECONDS = 8.0
"""Time that an interrupted run has to merge parts, once its checkpoints are written."""
PUBLISH_SECONDS = 1.0
MOST_PUBLISHED = 100
"""Running trials whose progress the driver's file in the store shows."""


@contextmanager
def interruptible(interrupted: Callable[[], None], ends_process: bool = True) -> Iterator[None]:
    """Call `interrupted` at the first Ctrl-C or SIGTERM, and exit at once at the second, or raise KeyboardInterrupt.

    The handlers of before are restored at the end. In a thread other than the main one nothing can be handled.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    was_interrupted = False

    def interrupt(number: int, frame: Any) -> None:
        nonlocal was_interrupted
        note(number)
        if was_interrupted and ends_process:
            leave(number)
        if was_interrupted:
            raise KeyboardInterrupt
        was_interrupted = True
        interrupted()

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def compacting(store: Store, log: StoreLog) -> Iterator[None]:
    """Merge small parts of the store into large ones in the background, and once more at the end.

    An interrupted run does not wait long for a store that has stopped answering.
    """
    exiting = threading.Event()

    def compact() -> None:
        while not exiting.wait(COMPACT_SECONDS):
            try:
                store.compact(min_parts=COMPACT_PARTS)
            except Exception as error:  # compaction can wait; the trials cannot
                log.event("compaction failed", error=str(error))

    thread = threading.Thread(target=compact, daemon=True, name="orch-compaction")
    thread.start()
    try:
        yield
    finally:
        exiting.set()
        with given_up_after(TIDY_SECONDS):
            thread.join()
            try:
                store.compact(rewrite=True)
            except Exception as error:
                log.event("compaction failed", error=str(error))


class Session:
    """One run of a sweep or a search, in the driver's process: the part of its listener that both have in common."""

    def __init__(self, store: Store, machines: Any, lease: Lease, options: RunOptions):
        self._store, self._machines, self._lease, self._options = store, machines, lease, options
        self.log = open_driver_log(store, lease.driver_id, echo=options.verbose)
        self._deadline = None if options.max_hours is None else time.monotonic() + 3600 * options.max_hours
        self._spending = Spending(store, lease, options, machines.address or os.uname().nodename)
        self._display: Display | None = None
        self._stopped = ""
        """The reason for starting no more trials; empty while the run continues."""
        self._published_at = -PUBLISH_SECONDS
        self.changes: dict[str, None] = {}
        """What user code has changed in the global state of its processes."""
        self._quarantined: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._spending.close()
        self.log.flush(now=True)

    def should_stop(self) -> bool:
        return bool(self._stopped)

    def arrange(self, queue: deque[Unit]) -> None:
        """Leave the units in the order in which they wait."""

    def changed_state(self, text: str) -> None:
        if text not in self.changes:
            self.changes[text] = None
            self.log.event("changed state", text=text)

    def quarantined(self, places: Mapping[Place, str], news: str) -> None:
        """Tell the user, the log and the driver's file which places are in quarantine."""
        self._quarantined = published(places)
        self._published_at = -PUBLISH_SECONDS  # with the next heartbeat
        self.log.event("quarantine", news=news, places=[place.label for place in places])
        self._say(news)

    def refused(self, unit: Unit) -> None:
        """Give up the claims on a unit that waits again."""
        self._lease.release(unit.open_ids)

    def tick(self, running: Sequence[Unit], num_waiting: int) -> None:
        """Stop the run when its time is up or its money spent, write the log, show the progress, and publish it."""
        if self._deadline is not None and time.monotonic() > self._deadline and not self._stopped:
            self._stopped = "time is up"
        if self._machines.address is None and not self._stopped and (notice := reclaim_notice()):
            self._stopped = notice
        self._spending.count()
        if self._spending.is_used_up and not self._stopped:
            self._stopped = self._spending.reason
        self.log.flush()
        if self._display is not None:
            self._display.show()
        if time.monotonic() - self._published_at >= PUBLISH_SECONDS:
            self._published_at = time.monotonic()
            self._lease.counts = self._counts() | {
                "trials": _in_training(running),
                "quarantined": self._quarantined,
                "machines": self._spending.machines,
            }

    def _counts(self) -> dict[str, Any]:
        """Return the counts of this run and the time left, as far as they are known."""
        return {}

    def interrupt(self) -> None:
        """Stop the run at the user's request."""
        self._stopped = "interrupted"
        again = "Ctrl-C again exits at once" if self._options.ends_process else "interrupt again to give up waiting"
        self._say(f"stopping: every running trial is checkpointed first; {again}")

    def _say(self, text: str) -> None:
        if self._display is not None:
            self._display.say(text)


def warnings_about(changes: Iterable[str]) -> list[str]:
    """Return the lines that tell the user at the end of a run what user code has changed in its processes."""
    lines = [f"warning: {text}" for text in changes]
    return [*lines, "each of these trials had a process of its own: no other trial was affected"] if lines else []


def _in_training(units: Sequence[Unit]) -> list[dict[str, Any]]:
    """Return the trials in training, with their labels, as plain values for the driver's file."""
    found: list[dict[str, Any]] = []
    for unit in units:
        trials = {trial.id: trial for trial in unit.open_trials}
        for each in unit.running:
            if each.trial_id in trials and len(found) < MOST_PUBLISHED:
                found.append(replace(each, label=trials[each.trial_id].label_in_cell).to_dict())
    return found
