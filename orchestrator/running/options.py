"""The options of a run of trials and their defaults, which the command line uses too. Imports no Ray and no torch."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field

DEFAULT_TRAINING = "orch.running.worker:open_training"
STOP_SECONDS = 600.0
"""The time that a worker may take to finish its step and write its checkpoint when a run is stopped."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of a run of a sweep or a search."""

    join: bool = False
    """Share the work with drivers that are already on the store."""
    max_hours: float | None = None
    """Stop cleanly after this long."""
    max_dollars: float | None = None
    """Stop cleanly when the machines have cost this much."""
    dollars_per_hour: Callable[[], float | None] | None = None
    """Returns the price of the machines that are alive; None where prices are not known."""
    num_cpus: int | None = None
    """CPU cores of this machine to use; None uses all of them."""
    checkpoint_seconds: float = 60.0
    """Time between checkpoints of a trial."""
    hang_seconds: float = 1800.0
    """End a worker that has made no progress for this long."""
    weights_limit: int = 8_000_000
    """Keep trained weights up to this many bytes."""
    gpus_per_trial: float = 1.0
    """GPUs for each pack of trials."""
    device: str = "auto"
    """The device to train on: cpu, cuda, or auto, which uses GPUs where there are any."""
    pack: int | None = None
    """Most trials to train in one program; None packs as many as make it faster."""
    cheapest_first: bool = False
    """Run short trials first, for a time limit that is too short for all."""
    on_finish: str | None = None
    """A shell command to run at the end."""
    verbose: bool = False
    quiet: bool = False
    training: str = field(default_factory=lambda: os.environ.get("ORCH_TRAINING", DEFAULT_TRAINING))
    """`module:function` that opens a training in a worker: see `orch.running.worker.open_training`."""
    ends_process: bool = True
    """Whether a second Ctrl-C ends the process. Otherwise it raises KeyboardInterrupt, for notebooks."""
    confirm: Callable[[str], bool] = lambda question: True
    """Asks the user a yes-or-no question before a long run."""
