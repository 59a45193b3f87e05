"""What Ray 2.60 does that a sweep cannot live with, set right for as long as one runs; and what it says of a worker's
end, in our words."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray.air.execution._internal.actor_manager import RayActorManager
from ray.exceptions import OutOfMemoryError, RayActorError, RayError, RayTaskError
from ray.tune.execution.tune_controller import TuneController

from orch.running.failures import Failure, TrialError, describe
from orch.store import Outcome


class WorkerGone(RayActorError):
    """A loss that Ray reports as neither an actor's nor a task's error."""

    def __init__(self, message: str = ""):
        super().__init__(error_msg=message)


class KilledForMemory(WorkerGone):
    pass


PROCESS_DIED = "its worker process has died"
"""What Ray says of a process that crashed on a machine which is still there to tell. Otherwise the machine is gone."""


STOP_SECONDS = 600.0
"""How long a worker may take to finish its step and write its checkpoint when a sweep is stopped."""


@contextmanager
def patient_stops() -> Iterator[None]:
    """Tune 2.60 kills a worker ten seconds after asking it to stop, whatever its settings say."""
    original = TuneController.__init__

    def patient(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        self._actor_force_cleanup_timeout = STOP_SECONDS

    TuneController.__init__ = patient  # type: ignore[method-assign]
    try:
        yield
    finally:
        TuneController.__init__ = original  # type: ignore[method-assign]


@contextmanager
def no_ray_on_stdout() -> Iterator[None]:
    """Ray 2.60 prints word of a lost machine among our output, whatever `log_to_driver` says."""
    original = ray._private.worker.print_to_stdstream
    ray._private.worker.print_to_stdstream = lambda *arguments, **named: None
    try:
        yield
    finally:
        ray._private.worker.print_to_stdstream = original


@contextmanager
def losses_as_actor_errors() -> Iterator[None]:
    """Tune 2.60 gives up the whole experiment when Ray kills a worker for memory, or a node dies under a task: these
    errors are of no kind it knows. Hand it one it knows."""
    original = RayActorManager._actor_task_failed

    def translated(self: Any, tracked_actor_task: Any, exception: Exception) -> None:
        if isinstance(exception, RayError) and not isinstance(exception, (RayActorError, RayTaskError)):
            kind = KilledForMemory if isinstance(exception, OutOfMemoryError) else WorkerGone
            exception = kind(str(exception))
        original(self, tracked_actor_task, exception)

    RayActorManager._actor_task_failed = translated  # type: ignore[method-assign]
    try:
        yield
    finally:
        RayActorManager._actor_task_failed = original  # type: ignore[method-assign]


def failure_of(error: BaseException | None, on_cluster: bool) -> Failure:
    """What Ray says about a worker, as what happened to its trials."""
    if isinstance(error, KilledForMemory):
        return Failure(Outcome.OUT_OF_MEMORY, "killed for memory", "Ray ended the worker to save memory", str(error))
    if isinstance(error, RayActorError):
        if on_cluster and PROCESS_DIED not in str(error):
            return Failure(Outcome.LOST, "lost machine", "the machine is gone", str(error), blameless=True)
        return Failure(Outcome.LOST, "lost worker", "the worker process is gone", str(error))
    cause = error.cause if isinstance(error, RayTaskError) else error
    if cause is None:  # nothing that the trial raised: its worker ended, and Ray did not keep why
        return Failure(Outcome.LOST, "lost worker", "the worker ended and Ray does not say why", str(error or ""))
    return cause.failure if isinstance(cause, TrialError) else describe(cause)
