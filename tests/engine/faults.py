"""Trainings that misbehave on purpose: real ones, but for the trials that ORCH_FAULTS names.

ORCH_FAULTS is a JSON list of [kind, conditions], such as [["raise", {"model": "lstm"}], ["slow", {}]].
"""

import json
import os
import time
from typing import Any

from orch.running import worker
from orch.sweeps.trial import Trial
from orch.training.snapshot import Snapshot


def open_training(trials: list[Trial], snapshots: list[Snapshot | None], device: str) -> Any:
    inner = worker.open_training(trials, snapshots, "cpu")  # GPUs may exist in name only
    for kind, conditions in json.loads(os.environ.get("ORCH_FAULTS", "[]")):
        if all(_value(trials[0], name) == value for name, value in conditions.items()):
            return Faulty(inner, kind)
    return inner


def _value(trial: Trial, name: str) -> Any:
    if name in ("model", "task"):
        return getattr(trial, name).name
    return next(getattr(part, name) for part in (trial, trial.task, trial.model) if hasattr(part, name))


class Faulty:
    def __init__(self, inner: Any, kind: str):
        self._inner, self._kind = inner, kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def advance(self, on_step: Any = None) -> None:
        if self._kind == "raise":
            raise RuntimeError(f"this trial is broken (s3://someone:sesame@bucket), as attempt {os.getpid()} found")
        if self._kind.startswith("raise "):
            raise RuntimeError(self._kind.removeprefix("raise "))
        if self._kind == "memory":
            hoard = []
            while True:  # until Ray's memory monitor ends this process
                hoard.append(b"x" * (64 << 20))
                time.sleep(0.02)
        if self._kind == "hang":
            time.sleep(100_000)
        if self._kind.startswith("wait for "):
            while not os.path.exists(self._kind.removeprefix("wait for ")):
                time.sleep(0.1)
        if self._kind.startswith("slow"):
            time.sleep(float(self._kind.partition(" ")[2] or 0.4))
        self._inner.advance()
