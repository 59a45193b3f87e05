"""The end of a command at Ctrl-C or SIGTERM: one sentence, exit code 130 or 143, and nothing left behind.

The first signal raises `Interrupted` in the main thread, so that contexts are left in order. Code in C can hold the
main thread up, and some libraries cannot be interrupted half-way: after a few seconds, at a second signal, or at once
within `leaving_at_once`, the process ends as if it were killed, but its children and temporary folders go first.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from orch.core.scratch import remove_own

GRACE_SECONDS = 5.0
_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """Raised in the main thread at the first Ctrl-C or SIGTERM."""

    def __init__(self, number: int):
        super().__init__(sentence(number))
        self.number = number


def sentence(number: int) -> str:
    """Return what a command says that was ended by this signal."""
    return f"stopped by {'Ctrl-C' if number == signal.SIGINT else signal.Signals(number).name}"


_in_charge = False
_last: int | None = None
_received: int | None = None
_ending = threading.RLock()


def received() -> int | None:
    """Return the signal that has raised `Interrupted`. Libraries may have turned that into an error of their own."""
    return _received


def note(number: int) -> None:
    """Remember the signal that ends this process, for its exit code."""
    global _last
    _last = number


def exit_code() -> int:
    """Return the exit code of a process that ends because of the last signal: 130 after Ctrl-C, 143 after SIGTERM."""
    return 128 + (_last or signal.SIGINT)


def leave(number: int) -> NoReturn:
    """End this process now, because of this signal, after its children and its temporary folders."""
    _end(sentence(number), 128 + number)


def give_up(problem: str) -> None:
    """End this process now with an error, or with the signal that it was about to end for, if that is ours to decide.

    It is not in a notebook, or in a program of the user's.
    """
    if _in_charge and _last is not None:
        leave(_last)
    if _in_charge:
        _end(f"error: {problem}", 2)


@contextlib.contextmanager
def given_up_after(seconds: float) -> Iterator[None]:
    """If a signal is ending this process, let it end now if the block takes longer than so many seconds."""
    if not _in_charge or _last is None:
        yield
        return
    over = threading.Event()
    number = _last

    def watch() -> None:
        if not over.wait(seconds):
            leave(number)

    threading.Thread(target=watch, daemon=True, name="orch-given-up").start()
    try:
        yield
    finally:
        over.set()


def _end(text: str, code: int) -> NoReturn:
    with _ending:  # another thread that sees how processes end, and would give up because of that, waits here
        with contextlib.suppress(OSError):
            os.write(2, f"{text}\n".encode())
        _kill_descendants()
        remove_own()
        os._exit(code)


def _raise(number: int, frame: FrameType | None) -> None:
    global _received
    note(number)
    _received = number
    sys.unraisablehook = lambda ignored: None  # where an exception cannot be raised, it would be printed
    signal.signal(number, _leave)  # a second signal does not wait
    raise Interrupted(number)


def _leave(number: int, frame: FrameType | None) -> None:
    leave(number)


@contextlib.contextmanager
def ending_cleanly() -> Iterator[None]:
    """End the block as this module describes, if it runs in the main thread. Signals that are ignored stay ignored."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is _raise:
        yield
        return
    global _received, _last, _in_charge
    _received, _last, _in_charge, hook = None, None, True, sys.unraisablehook
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _raise)
    wakeup_before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reading,), daemon=True, name="orch-signals")
    watcher.start()
    try:
        yield
    finally:
        _in_charge = False
        signal.set_wakeup_fd(wakeup_before)
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writing)
        watcher.join()
        os.close(reading)


@contextlib.contextmanager
def leaving_at_once() -> Iterator[None]:
    """Let a signal end the process without raising: within Ray's start and end, an exception would crash Ray's C++."""
    ours = [number for number in _NUMBERS if signal.getsignal(number) in (_raise, _leave)]
    if threading.current_thread() is not threading.main_thread():
        ours = []
    before = {number: signal.signal(number, _leave) for number in ours}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(reading: int) -> None:
    """End the process if it has not ended some seconds after a signal that nothing else handles."""
    while received := os.read(reading, 1):
        number = received[0]
        # Whoever has installed a handler of its own, as a sweep does that stops with checkpoints, ends in its own time.
        if number not in _NUMBERS or signal.getsignal(number) not in (_raise, _leave):
            continue
        until = time.monotonic() + GRACE_SECONDS
        os.set_blocking(reading, False)
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                again = os.read(reading, 1)
                if not again:
                    return
                if again[0] in _NUMBERS:  # the main thread may be held up
                    break
            time.sleep(0.05)
        leave(number)


def _kill_descendants() -> None:
    """Kill the processes that this one has started, and those that they have started, where the system lists them."""
    children: dict[int, list[int]] = {}
    with contextlib.suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat") as file:
                children.setdefault(int(file.read().rpartition(")")[2].split()[1]), []).append(int(name))
    found = list(children.get(os.getpid(), ()))
    for process_id in found:  # the list grows by the children of its members
        found += children.get(process_id, ())
    for process_id in found:
        with contextlib.suppress(OSError):
            os.kill(process_id, signal.SIGKILL)


def hasten(code: int) -> None:
    """Let a signal only hasten the end of this process, whose exit code is known and whose work is done."""
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *ignored: os._exit(code))


def ignore() -> None:
    """Ignore signals from now on, in the second for which Python takes itself apart: it would let them end it."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)
