"""The line of a user's code that changes the global state of its process. Used only in the probe's process."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from orch.usercode.global_state import (
    CHANGED_BY_IMPORTS,
    CHANGES,
    HARMLESS_WHILE_LOADING,
    SharedFunctions,
    read_state,
    text_about,
)
from orch.usercode.loading import CODE_FOLDER

_WHILE_LOADING = set(CHANGES) - HARMLESS_WHILE_LOADING
"""What a file may not change when it is loaded."""
_STARTS = {"subprocess.Popen", "os.posix_spawn", "os.system", "thread", "os.fork", "os.forkpty"}


def place_of(frame: FrameType | None) -> str:
    """Return file and line of the innermost frame of a user's code; empty if there is none."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(CODE_FOLDER):
            return f"{frame.f_code.co_filename.rpartition('/')[2]}, line {frame.f_lineno}"
        frame = frame.f_back
    return ""


class Watch:
    """Watches a user's code line by line while `watching`, and lists what it changes for everybody, with the line."""

    def __init__(self, place_file: int):
        """Write the line that runs to the file `place_file`, for the parent of a process that dies there."""
        self.problems: list[str] = []
        self._place_file = place_file
        self._depth = 0
        self._before: dict[str, Any] = {}
        self._changed_at: dict[str, str] = {}
        self._place = ""
        self._keys = set(CHANGES)
        self._started: list[str] = []
        sys.addaudithook(self._audit)
        start = threading.Thread.start

        def audited_start(thread: threading.Thread) -> None:
            self._audit("thread", ())  # Python has no event for it before 3.13
            start(thread)

        vars(threading)["Thread"].start = audited_start

    @contextmanager
    def watching(self, while_loading: bool = False) -> Iterator[None]:
        self._keys = _WHILE_LOADING if while_loading else set(CHANGES)
        self._depth, self._started, functions = 0, [], SharedFunctions()
        running, num_imported = _running(), len(sys.modules)
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)
            os.ftruncate(self._place_file, 0)
        # Libraries replace functions when they are imported, and torch when its settings change.
        by_users = while_loading or bool(self.problems) or len(sys.modules) != num_imported
        if replaced := functions.replaced(by_users):
            self._add("", text_about(replaced))
        if staying := _running() - running:
            kind = " and ".join(sorted({kind for kind, _ in staying}))
            place = self._started[-1] if self._started else ""
            self._add(place, f"starts a {kind} that stays: end it, because a worker trains many trials in one process")

    def _add(self, place: str, change: str) -> None:
        if (problem := f"{place}: {{}} {change}" if place else f"{{}} {change}") not in self.problems:
            self.problems.append(problem)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _STARTS and (place := place_of(sys._getframe(1))):
            self._started.append(place)
            if event in ("os.fork", "os.forkpty"):
                self._add(place, "forks the process, which torch does not survive: leave it out")
                raise RuntimeError("a model or a task must not fork")

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(CODE_FOLDER):
            return None
        if self._depth == 0:
            self._before, self._changed_at = read_state(), {}
            self._place = place_of(frame)
        self._depth += 1
        return self._traced

    def _traced(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event not in ("line", "return"):
            return self._traced
        now = read_state()
        if now["imported"] != self._before["imported"]:
            self._before |= {key: now[key] for key in (*CHANGED_BY_IMPORTS - self._changed_at.keys(), "imported")}
        for key in self._keys:
            if now[key] != self._before[key]:
                self._changed_at.setdefault(key, self._place)
            else:
                self._changed_at.pop(key, None)  # it was changed for a while only
        self._place = place_of(frame)
        os.pwrite(self._place_file, self._place.ljust(300).encode()[:300], 0)
        if event == "return":
            self._depth -= 1
            if self._depth == 0:
                for key, place in self._changed_at.items():
                    self._add(place, CHANGES[key])
        return self._traced


def _running() -> set[tuple[str, int]]:
    """Return the threads and the child processes of this process."""
    threads = {("thread", each.native_id or 0) for each in threading.enumerate()}
    children = set()
    for path in Path("/proc/self/task").glob("*/children"):
        children |= {("process", int(pid)) for pid in path.read_text().split()}
    return threads | children
