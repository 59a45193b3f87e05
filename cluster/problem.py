"""A finding of `orch cluster check`, and what messages need to quote Ray, ssh or a cloud."""

import contextlib
import dataclasses
import io
import logging
from collections.abc import Iterator
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One sentence that names the problem and the remedy. A file with a fatal problem cannot be used."""

    text: str
    fatal: bool


def error(text: str) -> Problem:
    """Create a problem that keeps the cluster from starting, from working, or from being safe."""
    return Problem(text, fatal=True)


def warning(text: str) -> Problem:
    """Create a problem with which the cluster works, but perhaps not as intended."""
    return Problem(text, fatal=False)


def quoted(text: Any) -> str:
    """Turn an error or a message of other software into one line without a full stop; else the type of the error."""
    return " ".join(str(text).split()).rstrip(".") or type(text).__name__


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Mute Ray, which prints and logs advice while it reads a launcher file."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)
