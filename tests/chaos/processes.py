"""Processes of a round: plain ones, forked from a server, and commands; how to find them, and the time they took."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path

from tests.chaos import plain

ROOT = Path(__file__).parents[2]
MARK = "ORCH_CHAOS_ROUND"
"""The environment variable by which the processes of a round are found, whoever their parent is by now."""
HUNG_SECONDS = 300.0
"""A process that has not ended after this long never will: rounds take seconds."""
_TICKS = os.sysconf("SC_CLK_TCK")
_FORKS = multiprocessing.get_context("forkserver")


class Hung(Exception):
    """Raised if a process does not end."""


class Plain:
    """A plain process; it is forked from a server that has imported everything, within milliseconds."""

    def __init__(self, orders: plain.Orders):
        _FORKS.set_forkserver_preload(["tests.chaos.warm"])
        self.output = Path(orders.output)
        self._process = _FORKS.Process(target=plain.run, args=(orders,))
        os.environ["ORCH_CHAOS_SERVER"] = "1"  # see `warm`, which only the server imports
        self._process.start()
        del os.environ["ORCH_CHAOS_SERVER"]

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.is_alive()

    def signal(self, number: int) -> None:
        if self.running:
            os.kill(self.pid, number)

    def wait(self, seconds: float = HUNG_SECONDS) -> int:
        """Wait for its end, and return its exit code: negative for a signal."""
        self._process.join(seconds)
        code = self._process.exitcode
        if code is None:
            raise Hung(f"a plain process ({self.output.name}) does not end")
        return code

    def end(self) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join()


class Command:
    """An `orch` command in a process of its own, with everything that it starts."""

    def __init__(self, words: list[str], output: Path, folder: Path, environment: Mapping[str, str]):
        self.words, self.output = words, output
        with open(output, "ab") as file:
            self._process = subprocess.Popen(
                words, cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: int) -> None:
        if self.running:
            self._process.send_signal(number)

    def wait(self, seconds: float = HUNG_SECONDS) -> int:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Hung(f"{' '.join(self.words[2:5])} ({self.output.name}) does not end") from None

    def end(self) -> None:
        if self.running:
            self._process.kill()
        self._process.wait()


@dataclass(frozen=True)
class Found:
    """A process of a round, as the kernel describes it."""

    pid: int
    command: str
    cpu_seconds: float
    state: str

    @property
    def role(self) -> str:
        """What it does: driver, worker, raylet, gcs or other."""
        if "ray::" in self.command:
            return "worker"
        if "/raylet/raylet" in self.command:
            return "raylet"
        if "gcs_server" in self.command:
            return "gcs"
        return "driver" if "-m orch" in self.command else "other"


def processes_of(mark: str) -> list[Found]:
    """Return the living processes whose environment has the mark of a round."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted not in (folder / "environ").read_bytes():
                continue
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            found.append(Found(int(folder.name), command, (int(fields[11]) + int(fields[12])) / _TICKS, fields[0]))
    return [each for each in found if each.state != "Z"]


class Meter:
    """Adds up the processor time of the processes of a round; what a process takes in its last second is missed."""

    def __init__(self, mark: str):
        self._mark = mark
        self._seconds: dict[int, float] = {}
        self._plain = _time_of_forks()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(1.0):
            self._seconds |= {found.pid: found.cpu_seconds for found in processes_of(self._mark)}

    def stop(self) -> float:
        """Return the seconds so far, and measure no more."""
        self._ended.set()
        self._thread.join()
        return sum(self._seconds.values()) + _time_of_forks() - self._plain


def _time_of_forks() -> float:
    """Return the processor time of all plain processes that have ended, as the server that forked them knows it."""
    server = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    try:
        fields = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[13]) + int(fields[14])) / _TICKS


def end_all(mark: str) -> None:
    """End every process of a round."""
    for found in processes_of(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.pid, signal.SIGKILL)


def orphans(mark: str, seconds: float) -> list[Found]:
    """Return the processes of a round that are still there after this long."""
    until = time.monotonic() + seconds
    while (found := processes_of(mark)) and time.monotonic() < until:
        time.sleep(0.2)
    return found


def environment_for(mark: str, folder: Path, location: str) -> dict[str, str]:
    """Return the environment of a round's commands: all that is temporary goes below its folder."""
    place = folder / "tmp"
    place.mkdir(exist_ok=True)
    return {
        **os.environ,
        MARK: mark,
        "ORCH_STORE": location,
        "TMPDIR": str(place),
        "RAY_TMPDIR": str(place),
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    }


def orch_words(arguments: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "orch", *arguments]


def iterate(process: Plain | Command, pauses: Iterator[float]) -> Iterator[None]:
    """Yield after each pause, for as long as the process runs."""
    for pause in pauses:
        time.sleep(pause)
        if not process.running:
            return
        yield
