"""Try a user's models and tasks in a process of its own before anything else is started.

Each takes a few training steps and is evaluated, for seconds. What raises, hangs, dies, returns NaN or changes the
process for others is reported with the user's file and line, all of it at once. What works is timed.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from orch.core.errors import InvalidCode
from orch.core.scratch import scratch_folder
from orch.planning.probed import Probe, Probed
from orch.sweeps.recipe import BFLOAT16, FLOAT32
from orch.sweeps.trial import Trial
from orch.usercode.loading import code_of, codes_defining
from orch.usercode.probe_cache import read_probed, write_probed
from orch.usercode.probe_death import CRASH, PLACE, SECONDS_VARIABLE, describe_death

SECONDS = 60.0
"""The time that the probe of one model may take."""
_START_SECONDS = 120.0
"""Time to start Python and to import torch, beside what a user's file does when it is loaded."""
_GRACE_SECONDS = 15.0
_END_SECONDS = 1.0
_MOST_NAMED = 3


def probe_seconds() -> float:
    """Return the time limit for one model, which the environment may set for slow ones."""
    try:
        return max(1.0, float(os.environ[SECONDS_VARIABLE]))
    except (KeyError, ValueError):
        return SECONDS


def make_probe(say: Callable[[str], None] = lambda text: None) -> Probe:
    """Return a probe that reports to `say` when it starts a process."""
    return lambda trials: probe(trials, say)


def probe(trials: Sequence[Trial], say: Callable[[str], None] = lambda text: None) -> dict[Trial, Probed]:
    """Try every model and task of a user's own code among these trials, and return what each took.

    One `InvalidCode` lists everything that is wrong. What was tried before, with the same code on this machine, is
    not tried again. Built-in models and tasks are not tried.
    """
    found: dict[Trial, Probed] = {}
    untried = []
    for trial in _to_try(trials):
        if (known := read_probed(trial)) is not None:
            found[trial] = known
        else:
            untried.append(trial)
    if untried:
        kinds = "; ".join(trial.label for trial in untried[:_MOST_NAMED])
        more = f"; {len(untried) - _MOST_NAMED} more" if len(untried) > _MOST_NAMED else ""
        say(f"trying your code for a few steps, in a process of its own: {kinds}{more}")
    problems: list[str] = []
    for trial, probed, wrong in _tried(untried):
        problems += wrong
        if probed is not None:
            found[trial] = probed
            write_probed(trial, probed)
    if problems:
        raise InvalidCode([*dict.fromkeys(problems)])
    return found


def _tried(trials: Sequence[Trial]) -> Iterator[tuple[Trial, Probed | None, list[str]]]:
    if trials:
        with _Process(trials) as process:
            yield from process.results()


def _to_try(trials: Iterable[Trial]) -> list[Trial]:
    """Return as few trials as have every model and every task of a user's own code."""
    covered: set[Any] = set()
    chosen = []
    for trial in dict.fromkeys(map(_on_a_cpu, trials)):
        own = {part for part in (trial.model, trial.task) if code_of(type(part)) is not None}
        if own - covered:
            covered |= own
            chosen.append(trial)
    return chosen


def _on_a_cpu(trial: Trial) -> Trial:
    """Return a trial like this one, as it can be tried on a CPU."""
    alike = trial.stackable()
    return replace(alike, precision=FLOAT32) if alike.precision == BFLOAT16 else alike


class _Process:
    """The process that tries trials, one after the other. It and what it started end when the context is left."""

    def __init__(self, trials: Sequence[Trial]):
        self._trials, self._seconds = trials, probe_seconds()

    def __enter__(self) -> "_Process":
        self._temporary = scratch_folder("probe")
        self._folder = self._temporary.__enter__()
        codes = codes_defining(self._trials)
        request = {
            "code": [code.to_dict() for code in codes],
            "trials": [trial.to_dict() for trial in self._trials],
            "seconds": self._seconds,
            "folder": str(self._folder),
        }
        self._file = codes[0].file
        with (self._folder / "errors").open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "orch.usercode.probe_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
                start_new_session=True,  # so that processes it starts can be ended with it
            )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died at once, which reading its output finds out
            self._process.stdin.write(json.dumps(request).encode())
            self._process.stdin.close()
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._temporary.__exit__(None, None, None)

    def results(self) -> Iterator[tuple[Trial, Probed | None, list[str]]]:
        """Yield each trial that was tried, with what it took or with its problems."""
        tried: Trial | None = None
        while True:
            message = self._read(self._seconds + _GRACE_SECONDS + (_START_SECONDS if tried is None else 0))
            if message is None:
                subject = "the file" if tried is None else f"model {tried.model.name}"
                yield tried or self._trials[0], None, [self._death(subject)]
                return
            if message.get("loaded"):
                yield self._trials[0], None, message["loaded"]
                return
            if "began" in message:
                tried = self._trials[message["began"]]
            elif "ended" in message:
                probed = message["probed"]
                trial = self._trials[message["ended"]]
                yield trial, None if probed is None else Probed(**probed), message["problems"]
                if trial is self._trials[-1]:
                    return

    def _read(self, seconds: float) -> dict[str, Any] | None:
        """Return the next message; None if the process ended or is silent for too long."""
        assert self._process.stdout is not None
        until = time.monotonic() + seconds
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self._process.stdout.fileno(), 1) if ready else b""
            if not piece:
                return None
            line += piece
        message: dict[str, Any] = json.loads(line)
        return message

    def _death(self, subject: str) -> str:
        """Describe the end of the process itself, in one sentence."""
        crash, place, said = (self._text(name) for name in (CRASH, PLACE, "errors"))
        with suppress(subprocess.TimeoutExpired):  # its output ends a moment before it does
            self._process.wait(_END_SECONDS)
        code = self._process.poll()
        if code == 1 and said and not crash:
            return f"{self._file}: {subject} cannot be tried ({said.splitlines()[-1][:300]}): fix it"
        return describe_death(crash, place or self._file, subject, code, self._seconds)

    def _text(self, name: str) -> str:
        path = self._folder / name
        return path.read_text(errors="replace").strip("\0 \n") if path.exists() else ""
