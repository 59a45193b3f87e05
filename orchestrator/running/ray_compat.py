"""Everything private to Ray 2.60 that the driver uses, and what Ray's errors mean for a trial.

`tests/running/test_ray_compat.py` names each private attribute, and what breaks when a new version of Ray changes it.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import ray
from ray import cloudpickle
from ray.air.execution._internal.actor_manager import RayActorManager
from ray.exceptions import OutOfMemoryError, RayActorError, RayError, RayTaskError
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial as TuneTrial
from ray.tune.experiment.config_parser import _create_trial_from_spec, _make_parser

from orch.running.failures import Failure, TrialError, describe
from orch.running.options import STOP_SECONDS
from orch.store import Outcome, scrub


class WorkerGone(RayActorError):
    """The loss of a worker that Ray reports neither as an actor's nor as a task's error."""

    def __init__(self, message: str = ""):
        super().__init__(error_msg=message)


class KilledForMemory(WorkerGone):
    """Raised in the driver for a worker that Ray ended because memory ran out."""


PROCESS_DIED = "its worker process has died"
"""Ray's message about a process that crashed on a live machine. Without it, the machine itself is gone."""


_make_parser_once = functools.cache(_make_parser)


def create_tune_trial(spec: dict[str, Any], tune_id: str) -> TuneTrial:
    """Create a Tune trial of an experiment's specification. Tune's public search algorithms cannot choose its id."""
    tune_trial: TuneTrial = _create_trial_from_spec(spec, _make_parser_once(), experiment_tag=tune_id, trial_id=tune_id)
    return tune_trial


@contextmanager
def _replaced(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextmanager
def considerate_start(only_loopback: bool) -> Iterator[None]:
    """Let Ray start without the signal handler of its own that would replace ours, and without secrets in its files.

    Ray's processes get groups of their own, so that a signal to the driver's group, as `timeout` and batch systems send
    it, does not end Ray before the driver has stopped. With `only_loopback`, Ray listens nowhere else. Ray 2.60 listens
    on all interfaces, except where it supports no clusters, as on macOS; it is told to behave as it does there. It
    records the command line of its driver, in which the store's location may stand.
    """
    command: Any = ray._private.utils.get_entrypoint_name
    with ExitStack() as stack:
        stack.enter_context(_replaced(ray._private.utils, "set_sigterm_handler", lambda handler: None))
        stack.enter_context(_replaced(ray._private.utils, "get_entrypoint_name", lambda: scrub(command())))
        if sys.platform == "linux":  # elsewhere, Ray ends its processes by their group
            start = functools.partial(subprocess.Popen, process_group=0)
            stack.enter_context(_replaced(ray._private.services, "ConsolePopen", start))
        if only_loopback:
            stack.enter_context(_replaced(ray._private.ray_constants, "ENABLE_RAY_CLUSTER", False))
        yield


def patient_stops() -> AbstractContextManager[None]:
    """Give workers `STOP_SECONDS` to stop. Tune 2.60 kills them after ten seconds, whatever its settings say."""
    original = TuneController.__init__

    def patient(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        self._actor_force_cleanup_timeout = STOP_SECONDS

    return _replaced(TuneController, "__init__", patient)


def no_ray_on_stdout() -> AbstractContextManager[None]:
    """Keep Ray from printing messages. Ray 2.60 prints news of a lost machine in spite of `log_to_driver=False`."""
    return _replaced(ray._private.worker, "print_to_stdstream", lambda *arguments, **named: None)


def losses_as_actor_errors() -> AbstractContextManager[None]:
    """Turn every loss of a worker into an actor error.

    Tune 2.60 ends the whole experiment when Ray kills a worker for memory or a node dies during a task, because it does
    not know these errors.
    """
    original = RayActorManager._actor_task_failed

    def translated(self: Any, tracked_actor_task: Any, exception: Exception) -> None:
        if isinstance(exception, RayError) and not isinstance(exception, (RayActorError, RayTaskError)):
            kind = KilledForMemory if isinstance(exception, OutOfMemoryError) else WorkerGone
            exception = kind(str(exception))
        original(self, tracked_actor_task, exception)

    return _replaced(RayActorManager, "_actor_task_failed", translated)


def raised_error(tune_trial: TuneTrial) -> BaseException | None:
    """Return the exception that ended a Tune trial, if Tune kept it."""
    error: BaseException | None = tune_trial.get_error()
    path = tune_trial.pickled_error_file
    if path is not None and os.path.exists(path):
        with open(path, "rb") as file:
            error = cloudpickle.load(file)
    return error


def failure_of(error: BaseException | None, on_cluster: bool) -> Failure:
    """Translate what Ray reports of a worker into what happened to its trials."""
    if isinstance(error, KilledForMemory):
        return Failure(Outcome.OUT_OF_MEMORY, "killed for memory", "Ray ended the worker to save memory", str(error))
    if isinstance(error, RayActorError):
        if on_cluster and PROCESS_DIED not in str(error):
            return Failure(Outcome.LOST, "lost machine", "the machine is gone", str(error), blameless=True)
        return Failure(Outcome.LOST, "lost worker", "the worker process is gone", str(error))
    cause = error.cause if isinstance(error, RayTaskError) else error
    if cause is None:  # the trial raised nothing: its worker ended, and Ray did not keep the reason
        return Failure(Outcome.LOST, "lost worker", "the worker ended and Ray does not say why", str(error or ""))
    return cause.failure if isinstance(cause, TrialError) else describe(cause)
