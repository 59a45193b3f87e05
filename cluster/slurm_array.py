"""`orch slurm`: an array of Slurm tasks, each of them a driver with a Ray of its own, which share a store."""

import dataclasses
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from orch.core.errors import InvalidSettings, OrchError
from orch.planning.gpu_share import MOST_SHARING
from orch.running.options import AUTO
from orch.store import scrub

BODY = Path(__file__).with_name("slurm_array.sh")
LEAST_MINUTES = 10
"""Shortest time limit of a task: some minutes of it go into starting, and the last two into ending."""
OURS = ("--array", "--nodes", "--ntasks", "--requeue", "--no-requeue", "--signal", "--open-mode", "--wrap")
"""Options of sbatch on which the script relies. sbatch takes their beginnings, too."""
OURS_SHORT = ("-a", "-N", "-n")
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<first>\d+)(?::(?P<second>\d+))?(?::(?P<third>\d+))?")


class SlurmRefused(OrchError):
    """Raised when Slurm does not take the array."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SlurmArray:
    """The tasks to ask Slurm for. What is None is left to Slurm's own defaults."""

    tasks: int
    cpus: int | None = None
    """CPU cores of each task; None means one for each trial that its GPUs hold."""
    gpus_per_trial: float | str = 1.0
    gpus: str | None = None
    """GPUs of each task: a number, or a type and a number such as a100:4."""
    time: str | None = None
    partition: str | None = None
    account: str | None = None
    extra: tuple[str, ...] = ()
    """More options of sbatch."""

    @property
    def num_gpus(self) -> int:
        return int((self.gpus or "0").rpartition(":")[2])

    @property
    def num_cpus(self) -> int:
        each = 1 / MOST_SHARING if self.gpus_per_trial == AUTO else float(self.gpus_per_trial)
        return self.cpus or max(1, int(self.num_gpus / each))

    @property
    def options(self) -> list[str]:
        """The options of sbatch, as words."""
        chosen = {
            "--cpus-per-task": self.num_cpus,
            "--gpus-per-node": self.gpus,
            "--time": self.time,
            "--partition": self.partition,
            "--account": self.account,
        }
        return [
            "--job-name=orch",
            f"--array=1-{self.tasks}",
            "--nodes=1",
            "--ntasks=1",
            *(f"{name}={value}" for name, value in chosen.items() if value is not None),
            "--requeue",
            "--open-mode=append",
            "--signal=B:TERM@120",
            "--output=orch-%A_%a.out",
            *self.extra,
        ]


def check_array(array: SlurmArray) -> list[str]:
    """List everything wrong with an array."""
    return list(_problems(array))


def _problems(array: SlurmArray) -> Iterator[str]:
    if array.tasks < 1:
        yield f"--tasks {array.tasks} is not enough: use 1 or more"
    if array.gpus is not None and not re.fullmatch(r"(?:[\w.-]+:)?[1-9]\d*", array.gpus):
        yield f"--gpus {array.gpus} is neither a number nor a type and a number: use 4 or a100:4, for example"
    if array.time is not None:
        minutes = minutes_of(array.time)
        if minutes is None:
            yield f"--time {array.time} is not a time of Slurm: use hours:minutes:seconds or days-hours"
        elif minutes < LEAST_MINUTES:
            yield f"--time {array.time} is too short to start and to checkpoint: use {LEAST_MINUTES} minutes or more"
    for name in ("partition", "account"):
        value = getattr(array, name)
        if value is not None and not re.fullmatch(r"[\w.,@+-]+", value):
            yield f"--{name} {value!r} is not a name: use one that sinfo or sacctmgr lists"
    for option in array.extra:
        if not re.fullmatch(r"--?[a-zA-Z][^\n]*", option):
            yield f"--sbatch {option!r} is not an option of sbatch: use --sbatch=--constraint=a100, for example"
        elif option[:2] in OURS_SHORT or any(each.startswith(re.split(r"[=\s]", option)[0]) for each in OURS):
            yield f"--sbatch {option} is decided by orch slurm, which relies on it: leave it out"


def minutes_of(time: str) -> float | None:
    """Return the minutes of a time limit as sbatch reads it; None if it is none.

    >>> minutes_of("90"), minutes_of("90:00"), minutes_of("24:00:00"), minutes_of("2-12"), minutes_of("a day")
    (90.0, 90.0, 1440.0, 3600.0, None)
    """
    match = _TIME.fullmatch(time)
    if match is None:
        return None
    first, second, third = (int(match[name] or 0) for name in ("first", "second", "third"))
    if match["days"]:
        return float(int(match["days"]) * 1440 + first * 60 + second) + third / 60
    if match["third"]:
        return first * 60 + second + third / 60
    return first + second / 60


def array_script(array: SlurmArray, words: Sequence[str]) -> str:
    """Return the script of an array whose tasks run `orch WORDS`."""
    command = shlex.join([sys.executable, "-m", "orch", *words])
    if scrub(command) != command:
        shown = f"Slurm keeps the script of a job, and a credential stands in it ({scrub(command)})"
        raise InvalidSettings([f"{shown}: put it into the environment, such as ORCH_STORE, which the tasks inherit"])
    header = "\n".join(f"#SBATCH {option}" for option in array.options)
    return f"#!/usr/bin/env bash\n{header}\norch=({command})\n{BODY.read_text()}"


def shared_place(store: str) -> str:
    """Return the store as every node can name it. A folder that each node has for itself is an error."""
    if "://" in store:
        return store
    folder = Path(store).expanduser().absolute()
    if folder.parts[1:2] in (("tmp",), ("dev",), ("run",)):
        different = f"the store {folder} is a different folder on every node"
        raise InvalidSettings([f"{different}: name a folder that all nodes mount, or a bucket"])
    return str(folder)


def submit(script: str) -> str:
    """Hand the script to sbatch, and return the array's job id."""
    if shutil.which("sbatch") is None:
        remedy = "run orch slurm on a login node of the cluster, or add --dry-run to see the script"
        raise SlurmRefused(f"sbatch is not installed here: {remedy}")
    done = subprocess.run(["sbatch", "--parsable"], input=script, capture_output=True, text=True, check=False)
    said = " ".join(done.stderr.split()).removeprefix("sbatch: error: ")
    if done.returncode:
        raise SlurmRefused(f"Slurm refused the array ({said}): change --partition, --time, --gpus or --account")
    return done.stdout.strip().partition(";")[0]
