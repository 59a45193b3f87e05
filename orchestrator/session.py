"""What every run of trials does beside them: it heeds Ctrl-C, and keeps the store tidy."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from orchestrator.errors import OrchError
from orchestrator.lease import drivers
from orchestrator.log import StoreLog
from orchestrator.store import Store

COMPACT_SECONDS = 30.0
COMPACT_PARTS = 256


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
