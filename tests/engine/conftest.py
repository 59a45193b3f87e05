"""Sweeps on real Ray, each in a new process and with a new store."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orch.store import Store

ROOT = Path(__file__).parents[2]


class Sweeps:
    """Runs `orch` on one store."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.location = str(folder / "runs")
        self._processes: list[subprocess.Popen] = []

    @property
    def store(self) -> Store:
        return Store.open(self.location)

    def start(
        self, *arguments: str, faults: list | None = None, own_group: bool = False, **environment: str
    ) -> subprocess.Popen:
        more = {"ORCH_STORE": self.location, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"} | environment
        if faults is not None:
            more |= {"ORCH_TRAINING": "tests.engine.faults:open_training", "ORCH_FAULTS": json.dumps(faults)}
        process = subprocess.Popen(
            [sys.executable, "-m", "orch", *arguments],
            cwd=self.folder,
            env=os.environ | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=own_group,
        )
        self._processes.append(process)
        return process

    def run(self, *arguments: str, expect: int = 0, **more: Any) -> subprocess.CompletedProcess:
        process = self.start(*arguments, **more)
        output, errors = process.communicate(timeout=600)
        assert process.returncode == expect, f"exit code {process.returncode}\n{output}\n{errors}"
        return subprocess.CompletedProcess(arguments, process.returncode, output, errors)

    def attempts(self, event: str) -> list[dict[str, Any]]:
        rows = self.store.read("attempts").to_pylist()
        return sorted((row for row in rows if row["event"] == event), key=lambda row: row["at"])

    def end_all(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def wait_for(condition: Callable[[], Any], seconds: float = 90.0) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("the condition was not met in time")


@pytest.fixture
def sweeps(tmp_path: Path) -> Iterator[Sweeps]:
    found = Sweeps(tmp_path)
    yield found
    found.end_all()
