"""The global state of a process, and the line of a user's code that changes it. Used only in the probe's process."""

import os
import random
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from orch.usercode.loading import CODE_FOLDER

_CHANGES = {
    "dtype": "changes torch's default dtype: give dtype= where a tensor is made instead",
    "device": "changes torch's default device: give device= where a tensor is made instead",
    "threads": "sets the number of threads: leave it out, because every worker has one core",
    "flags": "changes torch's deterministic or benchmark flags: leave it out",
    "gradients": "switches gradients on or off for everything that follows: use it as `with torch.no_grad():`",
    "seed": "seeds torch's random numbers: leave it out, because every step of a trial is seeded",
    "random": "uses global random numbers of Python or numpy, which a resumed trial cannot repeat: use torch's",
    "environment": "changes os.environ: set the variable before orch is started",
    "folder": "changes the current folder: use absolute paths instead",
    "warnings": "changes the filters of warnings: use it within `with warnings.catch_warnings():`",
}
_WHILE_LOADING = {"dtype", "device", "threads", "flags", "gradients", "environment", "folder"}
"""What a file may not change when it is loaded. Seeds and warnings at the top of a file do no harm."""
_CHANGED_BY_IMPORTS = {"environment", "random", "warnings"}
"""What libraries change when they are imported, which torch does at odd moments."""
_STARTS = {"subprocess.Popen", "os.posix_spawn", "os.system", "thread", "os.fork", "os.forkpty"}


def _snapshot() -> dict[str, Any]:
    numpy = sys.modules.get("numpy")
    cudnn = torch.backends.cudnn
    return {
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "flags": (torch.are_deterministic_algorithms_enabled(), cudnn.deterministic, cudnn.benchmark),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "seed": torch.initial_seed(),
        "random": (random.getstate(), None if numpy is None else numpy.random.get_state()[1].tobytes()),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "warnings": list(warnings.filters),
        "imported": len(sys.modules),
    }


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
        self._keys = set(_CHANGES)
        self._started: list[str] = []
        sys.addaudithook(self._audit)
        start = threading.Thread.start

        def audited_start(thread: threading.Thread) -> None:
            self._audit("thread", ())  # Python has no event for it before 3.13
            start(thread)

        vars(threading)["Thread"].start = audited_start

    @contextmanager
    def watching(self, while_loading: bool = False) -> Iterator[None]:
        self._keys = _WHILE_LOADING if while_loading else set(_CHANGES)
        self._depth, self._started = 0, []
        running = _running()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(None)
            os.ftruncate(self._place_file, 0)
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
            self._before, self._changed_at = _snapshot(), {}
            self._place = place_of(frame)
        self._depth += 1
        return self._traced

    def _traced(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event not in ("line", "return"):
            return self._traced
        now = _snapshot()
        if now["imported"] != self._before["imported"]:
            self._before |= {key: now[key] for key in (*_CHANGED_BY_IMPORTS - self._changed_at.keys(), "imported")}
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
                    self._add(place, _CHANGES[key])
        return self._traced


def _running() -> set[tuple[str, int]]:
    """Return the threads and the child processes of this process."""
    threads = {("thread", each.native_id or 0) for each in threading.enumerate()}
    children = set()
    for path in Path("/proc/self/task").glob("*/children"):
        children |= {("process", int(pid)) for pid in path.read_text().split()}
    return threads | children
