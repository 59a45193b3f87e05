"""What a user's file prints while it is loaded or asked for its cells: messages, and never a part of an answer."""

import contextlib
import io
import sys
import threading
from collections.abc import Iterator
from typing import TextIO

from orch.core.printable import printable

_lock = threading.Lock()
_num_within = 0
_before: tuple[TextIO, TextIO]


class _Messages(io.TextIOBase):
    """A stream that passes texts on to another one, without control characters."""

    def __init__(self, sink: TextIO):
        self._sink = sink

    def write(self, text: str) -> int:
        self._sink.write("\n".join(map(printable, text.split("\n"))))
        return len(text)

    def flush(self) -> None:
        self._sink.flush()

    def fileno(self) -> int:
        return self._sink.fileno()

    def isatty(self) -> bool:
        return self._sink.isatty()


@contextlib.contextmanager
def prints_are_messages() -> Iterator[None]:
    """Let everything that Python code prints go to the standard error, where it cannot control the terminal.

    Several threads may be within at once: the first replaces the streams, the last puts them back.
    """
    global _num_within, _before
    with _lock:
        if _num_within == 0:
            _before = sys.stdout, sys.stderr
            sys.stdout = sys.stderr = _Messages(sys.stderr)
        _num_within += 1
    try:
        yield
    finally:
        with _lock:
            _num_within -= 1
            if _num_within == 0:
                sys.stdout, sys.stderr = _before
