"""One hostile input: a command of `orch` in a folder of its own, and what must never happen whatever it is given."""

import contextlib
import hashlib
import os
import re
import resource
import signal
import threading
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from orch.cli import main

CPU_SECONDS = 10
"""A command hangs if it computes for longer: a count of seconds that other programs on the machine do not change."""
WALL_SECONDS = 300
"""A command hangs if it waits for longer, as for a pipe that nobody writes to."""
OURS = re.compile(r"\x1b\[(?:[0-7]|2[2-9]|3\d|4\d|9\d|[34]8;[25](?:;\d+)+|;)*m")
"""The colours that commands print on a terminal."""


@dataclass(frozen=True)
class Case:
    """A command, and the folder in which it runs."""

    kind: str
    words: tuple[str, ...]
    folder: Path
    about: str = ""
    """What is hostile, for the report of a finding."""
    may_change: tuple[str, ...] = ()
    """Names in the folder that the command may create or change."""
    given: str | None = None
    """Standard input."""


@dataclass(frozen=True)
class Finding:
    """Something that a command did and must not do."""

    kind: str
    what: str
    case: Case = field(repr=False)
    detail: str = ""

    def __str__(self) -> str:
        return (
            f"{self.kind}: {self.what}: orch {' '.join(map(repr, self.case.words))} ({self.case.about})\n{self.detail}"
        )


class Hang(BaseException):
    """Raised in a command that takes too long. No command catches it."""


def examine(case: Case) -> list[Finding]:
    """Run a command in this process, and return everything that it must not have done."""
    before = _contents(case)
    outcome = _run(case)
    error, detail = outcome.exception, ""
    found = []
    if isinstance(error, Hang):
        found.append(Finding(case.kind, "hang", case))
    elif error is not None and not isinstance(error, SystemExit):
        detail = "".join(traceback.format_exception(error))[-1500:]
        found.append(Finding(case.kind, "traceback", case, detail))
    elif "Traceback (most recent call last)" in outcome.stderr:
        found.append(Finding(case.kind, "traceback", case, outcome.stderr[-1500:]))
    shown = OURS.sub("", outcome.stderr if _is_exact(case) else outcome.output)
    if hostile := sorted({each for each in shown if not each.isprintable() and each != "\n"}):
        found.append(Finding(case.kind, "escape", case, f"{hostile} in {shown[:300]!r}"))
    if outcome.exit_code not in (0, None) and not outcome.output.strip() and error is not None and not found:
        found.append(Finding(case.kind, "silence", case, f"exit code {outcome.exit_code}"))
    if changed := _contents(case) ^ before:
        found.append(Finding(case.kind, "change", case, str(sorted(name for name, _ in changed)[:5])))
    return found


def _is_exact(case: Case) -> bool:
    """Return whether the output is CSV for a program, which has the texts of a query as they are."""
    return case.words[0] == "query" and not {"table", "json", "markdown", "latex"} & set(case.words)


def _run(case: Case) -> Any:
    runner = CliRunner()
    here = Path.cwd()
    os.chdir(case.folder)
    try:
        with _limited(), warnings.catch_warnings():
            warnings.simplefilter("always")
            return runner.invoke(main, list(case.words), input=case.given)
    except Hang as error:
        return Result(runner, b"", b"", b"", None, 1, error)
    finally:
        os.chdir(here)


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Raise `Hang` in the main thread when a command computes or waits for too long."""

    def end(number: int, frame: Any) -> None:
        raise Hang

    assert threading.current_thread() is threading.main_thread(), "signals reach the main thread"
    before = {number: signal.signal(number, end) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _contents(case: Case) -> set[tuple[str, str]]:
    """Return the files that the command must not change, with their sizes and contents, and those above its folder."""
    found = set()
    root = case.folder.parent
    for place, folders, names in os.walk(root):
        path = Path(place)
        if path == case.folder:
            folders[:] = [name for name in folders if name not in case.may_change]
            names = [name for name in names if name not in case.may_change]
        for name in names:
            file = path / name
            if file.is_file() and file.stat().st_size < 1 << 24:
                found.add((str(file.relative_to(root)), hashlib.sha256(file.read_bytes()).hexdigest()))
            else:
                found.add((str(file.relative_to(root)), "special"))
    return found


def most_memory() -> float:
    """Return the most memory that this process has used, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
