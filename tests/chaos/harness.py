"""A round: a store, processes that work on it, one fault, an undisturbed end, and the check of what must hold."""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from tests.chaos import processes
from tests.chaos.places import Bucket, Place
from tests.chaos.plain import FINISHED, Orders
from tests.chaos.planned import FILE
from tests.chaos.processes import Command, Plain

RESULT_CODES = (0, 2)
"""Exit codes of a plain process that was not killed: done, or an error that was told in one line."""


@dataclass
class Round:
    """One round. A fault starts processes and disturbs them, the store or the network."""

    seed: int
    fault: str
    place: Place
    expected: str
    """The location of the results of undisturbed trials."""
    random: Random = field(init=False)
    mark: str = field(init=False)
    started: list[Plain | Command] = field(default_factory=list)
    damaged: dict[str, bytes | None] = field(default_factory=dict)
    """Files that were damaged on purpose, with their contents since; None for those that were deleted."""
    may_lack: dict[str, set[str]] = field(default_factory=lambda: {"trials": set(), "curves": set()})
    """Attempts whose rows of a table were in a damaged file."""
    events: list[str] = field(default_factory=list)
    """A log of what was done, for the analysis of a failed round."""
    own_models: set[str] = field(default_factory=set)
    """Models of a user whose trials may be there in addition to those that were planned."""
    uses_ray: bool = False

    def __post_init__(self) -> None:
        self.random = Random(f"{self.seed} {self.fault} {self.place.name}")
        self.mark = f"{self.folder.name}"

    @property
    def folder(self) -> Path:
        return self.place.folder

    @property
    def outputs(self) -> list[Path]:
        return sorted(self.folder.glob("*.out"))

    def note(self, text: str) -> None:
        self.events.append(f"{time.strftime('%H:%M:%S')} {text}")

    # Processes

    def plain(self, task: str = "sweep", location: str | None = None, **orders: Any) -> Plain:
        """Start a plain process."""
        made = self._orders(task, location or self.place.location, **orders)
        process = Plain(made)
        self.started.append(process)
        self.note(f"started {task} as {process.pid}" + (f", to be killed at {made.crash_at}" if made.crash_at else ""))
        return process

    def plain_command(self, *, step_seconds: float, **more: str) -> Command:
        """Start a plain process in an interpreter of its own, for variables that are read when it starts."""
        orders = self._orders("sweep", self.place.location, step_seconds=step_seconds)
        words = [sys.executable, "-m", "tests.chaos.plain", json.dumps(asdict(orders))]
        environment = processes.environment_for(self.mark, self.folder, self.place.location) | more
        command = Command(words, Path(orders.output), self.folder, environment)
        self.started.append(command)
        self.note(f"started a sweep as {command.pid}")
        return command

    def _orders(self, task: str, location: str, **more: Any) -> Orders:
        return Orders(
            location=location,
            output=str(self.folder / f"{len(self.started):02d}-{task}.out"),
            task=task,
            seed=self.random.randrange(1 << 30),
            environment=self.place.environment,
            **more,
        )

    def orch(self, *arguments: str, step_seconds: float = 0.0, prefix: tuple[str, ...] = (), **more: str) -> Command:
        """Start an `orch` command, whose trials pause after each stretch of training."""
        environment = processes.environment_for(self.mark, self.folder, self.place.location) | self.place.environment
        if step_seconds:
            environment |= {
                "ORCH_TRAINING": "tests.engine.faults:open_training",
                "ORCH_FAULTS": f'[["slow {step_seconds:g}", {{}}]]',
            }
        output = self.folder / f"{len(self.started):02d}-orch-{arguments[0]}.out"
        command = Command([*prefix, *processes.orch_words(arguments)], output, self.folder, environment | more)
        self.uses_ray = True
        self.started.append(command)
        self.note(f"started orch {' '.join(arguments)} as {command.pid} {more or ''}")
        return command

    def sweep(self, *options: str, **more: Any) -> Command:
        """Start the sweep of the planned trials on one worker, with checkpoints all the time."""
        return self.orch("sweep", FILE, "--cpus", "1", "--checkpoint-seconds", "0.1", *options, **more)

    def wait(self, process: Plain | Command, seconds: float = processes.HUNG_SECONDS) -> int:
        code = process.wait(seconds)
        self.note(f"{process.pid} ended with {code}")
        return code

    def pause(self, most: float) -> None:
        """Wait for up to this long, so that what follows happens at a random moment."""
        time.sleep(self.random.uniform(0.0, most))

    def wait_for(self, condition: Callable[[], Any], seconds: float = 120.0) -> Any:
        """Wait until a condition holds; return what it returned, which is false if the time is up."""
        until = time.monotonic() + seconds
        while not (found := condition()) and time.monotonic() < until:
            time.sleep(0.05)
        return found

    def process(self, role: str) -> int | None:
        """Return the id of a process of this round, of those that real runs consist of."""
        found = [each.pid for each in processes.processes_of(self.mark) if each.role == role]
        return self.random.choice(sorted(found)) if found else None

    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        try:
            os.kill(pid, number)
            self.note(f"sent {signal.Signals(number).name} to {pid}")
        except ProcessLookupError:
            self.note(f"{pid} had ended before {signal.Signals(number).name}")

    # Results

    @property
    def acknowledged(self) -> set[tuple[str, str]]:
        """The trials and attempts of all results that plain processes said to be written."""
        lines = [line.split() for path in self.outputs for line in path.read_text(errors="replace").splitlines()]
        return {(line[1], line[2]) for line in lines if len(line) == 3 and line[0] == FINISHED}

    def finish(self) -> str | None:
        """Let an undisturbed process do the rest; return what is wrong if it cannot."""
        process: Plain | Command = self.sweep() if self.uses_ray else self.plain(location=self.place.direct)
        code = self.wait(process)
        if code == 0:
            return None
        last = process.output.read_text(errors="replace").strip().splitlines()[-1:]
        return f"an undisturbed run at the end failed with exit code {code}: {' '.join(last)}"

    def end(self) -> None:
        """End whatever still runs."""
        for process in self.started:
            process.end()
        processes.end_all(self.mark)


def new_folder() -> Path:
    """Make the folder of a round. Its name is short, because Ray's sockets are in it."""
    return Path(tempfile.mkdtemp(prefix="chaos-", dir="/tmp"))


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def bucket_of(place: Place) -> Bucket:
    assert isinstance(place, Bucket)
    return place
