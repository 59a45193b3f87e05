"""The messages between a driver and its workers: the request to train a unit, and what is reported of it."""

from typing import Any, NamedTuple, TypedDict

SUMMARY = ("trial_id", "attempt_id", "validation_accuracy", "ood_accuracy", "stop_reason", "steps_trained")
"""The columns of a finished trial's row that a worker reports to the driver."""


class UnitRequest(TypedDict):
    """The message to a worker: one unit and all it takes to train it, as plain values that can be serialised."""

    trials: list[dict[str, Any]]
    attempts: dict[str, str]
    """The id of the attempt at each trial, chosen by the driver, which ends the attempts of a lost worker."""
    store: str
    driver_id: str
    on_cluster: bool
    """Whether a unit leaves a machine that is about to be reclaimed. On a single machine the driver stops the run."""
    device: str
    threads: int
    checkpoint_seconds: float
    weights_limit: int
    training: str
    """`module:function` that opens a training: see `orch.running.worker.open_training`."""
    code: list[dict[str, Any]]
    """The user code that defines models or tasks of the unit: see `UserCode`."""
    git_commit: str | None
    git_dirty: bool | None


class UnitState(NamedTuple):
    """The progress of an attempt at a unit."""

    done: bool
    step: int
    changes: list[str]
    """What the unit's user code has changed in the global state of its process, a sentence for each change."""
