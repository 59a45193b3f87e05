"""What every run of trials does beside them: it heeds Ctrl-C and its time, and keeps the store tidy."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from orch.core.errors import OrchError
from orch.running.lease import Lease, drivers
from orch.running.log import StoreLog
from orch.running.worker import DEFAULT_TRAINING
from orch.store import Store

COMPACT_SECONDS = 30.0
COMPACT_PARTS = 256


@dataclass
class Options:
    join: bool = False
    max_hours: float | None = None
    num_cpus: int | None = None
    checkpoint_seconds: float = 60.0
    hang_seconds: float = 1800.0
    weights_limit: int = 8_000_000
    gpus_per_trial: float = 1.0
    device: str = "auto"
    pack: int | None = None
    """Most trials in one program; as many as pay, unless told otherwise."""
    cheapest_first: bool = False
    """For a budget that does not last for everything."""
    on_finish: str | None = None
    verbose: bool = False
    quiet: bool = False
    training: str = field(default_factory=lambda: os.environ.get("ORCH_TRAINING", DEFAULT_TRAINING))
    confirm: Callable[[str], bool] = lambda question: True


class StoreHeld(OrchError):
    pass


def check_holders(store: Store, remedy: str) -> None:
    """Another driver on this store is named, before anything starts."""
    holders = [other for other in drivers(store) if other.alive]
    if holders:
        names = "; ".join(other.description for other in holders)
        raise StoreHeld(f"{store.location} is being worked on by {names}: {remedy}")


@contextmanager
def interruptible(interrupted: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) finishes cleanly, the second leaves at once."""
    asked = False

    def interrupt(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            os._exit(130)
        asked = True
        interrupted()

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def compacting(store: Store, log: StoreLog) -> Iterator[None]:
    """Small parts become large ones as the trials go on."""
    leave = threading.Event()

    def compact() -> None:
        while not leave.wait(COMPACT_SECONDS):
            try:
                store.compact(min_parts=COMPACT_PARTS)
            except Exception as error:  # tidiness can wait; the trials cannot
                log.event("compaction failed", error=str(error))

    thread = threading.Thread(target=compact, daemon=True, name="orch-compaction")
    thread.start()
    try:
        yield
    finally:
        leave.set()
        thread.join()
        try:
            store.compact()
        except Exception as error:
            log.event("compaction failed", error=str(error))


class Session:
    """One run, of a sweep or a search: what its listener needs whatever it runs. It lives in the driver's process."""

    def __init__(self, store: Store, machines: Any, lease: Lease, options: Options):
        self._store, self._machines, self._lease, self._options = store, machines, lease, options
        self.log = StoreLog(store, f"driver-{lease.driver_id}", echo=options.verbose)
        self._deadline = None if options.max_hours is None else time.monotonic() + 3600 * options.max_hours
        self._stopped = ""
        """Why nothing more is started."""

    def run_options(self) -> Any:
        """The driver's."""
        from orch.running.driver import RunOptions

        return RunOptions(
            driver_id=self._lease.driver_id,
            store=self._store.uri,
            checkpoint_seconds=self._options.checkpoint_seconds,
            hang_seconds=self._options.hang_seconds,
            weights_limit=self._options.weights_limit,
            training=self._options.training,
        )

    def should_stop(self) -> bool:
        return bool(self._stopped)

    def heed_time(self) -> None:
        if self._deadline is not None and time.monotonic() > self._deadline and not self._stopped:
            self._stopped = "time is up"

    def interrupt(self) -> None:
        self._stopped = "interrupted"
        self._say("stopping: every running trial is checkpointed first; Ctrl-C again leaves at once")

    def _say(self, text: str) -> None:
        raise NotImplementedError
