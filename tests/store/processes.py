"""Starting other processes that use a store, and killing them at a crash point."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def start(command: str, *arguments: Any, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.worker", command, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen) -> str:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output


def run(command: str, *arguments: Any, **environment: str) -> str:
    return finish(start(command, *arguments, **environment))


def run_until_killed(at: str, command: str, *arguments: Any) -> None:
    process = start(command, *arguments, ORCH_CRASH_AT=at)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, f"{command} did not reach the crash point {at}: {errors}"
