"""The least memory that a trial takes, and whether this machine has it. No torch.

Everything here is a lower bound: a trial that is refused could not have run, and one that is not may still fail.
"""

import math
import os
from collections.abc import Iterable
from pathlib import Path

from orch.core.errors import InvalidSettings
from orch.sweeps.batches import STEPS_PER_BLOCK
from orch.sweeps.recipe import FLOAT64
from orch.sweeps.trial import Trial

FLOAT, TOKEN = 4, 8
"""Bytes of a parameter or state, and of a token."""
COPIES_OF_TOKENS = 2
"""Copies of a set of tokens that exist at once while it is drawn: the symbols, and the padded sequences."""
MOST_LISTED = 3


def least_bytes(trial: Trial, device: str = "cpu") -> dict[str, int]:
    """Return the bytes of main memory that a trial takes at least, by what they are for.

    On a GPU, only the initial weights and the samples are in main memory.
    """
    num_parameters = trial.model.num_parameters(trial.vocabulary)
    trained = trial.task.num_tokens(trial.max_inputs)
    longest = max(trial.tested_lengths)
    on_cpu = device == "cpu"
    # Weights, gradients and the two moments of Adam; the states of a training batch, which gradients go back through.
    number = 2 * FLOAT if trial.precision == FLOAT64 else FLOAT
    weights = number * num_parameters * (4 if on_cpu else 1)
    states = number * trial.batch_size * trained * trial.model.width if on_cpu else 0
    drawn = trial.train_examples or STEPS_PER_BLOCK * trial.batch_size
    tokens = TOKEN * COPIES_OF_TOKENS
    labels = 2 * TOKEN * math.prod(trial.label_shape)  # places and answers, and only once
    return {
        f"{num_parameters:,} parameters": weights,
        f"training batches of {trial.batch_size:,} samples with up to {trial.max_inputs:,} inputs": states
        + (tokens * trained + labels) * drawn,
        f"{trial.validation_samples:,} validation samples": tokens * trial.validation_samples * trained,
        f"{trial.test_samples:,} test samples of {longest:,} inputs": tokens
        * trial.test_samples
        * trial.task.num_tokens(longest),
    }


def check_memory(trials: Iterable[Trial], device: str = "auto", available: int | None = None) -> None:
    """Raise an error if one of the trials cannot fit into the memory that this machine has left."""
    free = available_bytes() if available is None else available
    if free is None:
        return
    device = found_device(device)
    problems: dict[str, None] = {}
    for trial in dict.fromkeys(trial.stackable() for trial in trials):
        parts = least_bytes(trial, device)
        if sum(parts.values()) > free:
            cause = max(parts, key=parts.__getitem__)
            needed = f"{trial.label} would take at least {amount(sum(parts.values()))} of memory, mostly for {cause}"
            problems[f"{needed}; this machine has {amount(free)} left: {_remedy(cause)}"] = None
    if problems:
        listed = list(problems)
        more = [f"{len(listed) - MOST_LISTED:,} more trials take too much memory"] if len(listed) > MOST_LISTED else []
        raise InvalidSettings([*listed[:MOST_LISTED], *more])


def found_device(device: str) -> str:
    """Return the kind of device that `auto` stands for on this machine; any other as it is."""
    if device != "auto":
        return device
    return "cuda" if Path("/proc/driver/nvidia/version").exists() else "cpu"


def _remedy(cause: str) -> str:
    if "parameters" in cause:
        return "use a smaller model, such as a smaller width"
    if "test" in cause:
        return "lower test_length, curve_lengths or test_samples"
    return "lower validation_samples" if "validation" in cause else "lower batch_size, train_examples or max_inputs"


def available_bytes() -> int | None:
    """Return the memory that a new process can have: what the system or its control group has left, or None."""
    found = [each for each in (_of_system(), _of_control_group()) if each is not None]
    return min(found, default=None)


def _of_system() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None


def _of_control_group(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return what a container's limit leaves; None without a limit. Cached files make room when memory is needed."""
    try:
        limit, used = (int((folder / name).read_text()) for name in ("memory.max", "memory.current"))
        pairs = (line.split() for line in (folder / "memory.stat").read_text().splitlines())
        cached = sum(int(size) for kind, size in pairs if kind in ("active_file", "inactive_file"))
        return min(limit, max(0, limit - used + cached))
    except (OSError, ValueError):
        return None


def amount(num_bytes: float) -> str:
    """Format a number of bytes.

    >>> amount(1.5e9), amount(25e12), amount(300)
    ('1.5 GB', '25 TB', '300 bytes')
    """
    units = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
    power = min(len(units) - 1, int(math.log(max(1.0, num_bytes), 1000)))
    return f"{num_bytes / 1000**power:.3g} {units[power]}"
