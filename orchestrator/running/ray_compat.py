"""Everything private to Ray 2.60 that the driver uses, and what Ray's errors mean for a trial.

`tests/running/test_ray_compat.py` names each private attribute, and what breaks when a new version of Ray changes it.
"""

import functools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import ray
from ray import cloudpickle
from ray._private.state import GlobalState
from ray.air.execution._internal.actor_manager import RayActorManager
from ray.core.generated import autoscaler_pb2
from ray.exceptions import OutOfMemoryError, RayActorError, RayError, RayTaskError
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial as TuneTrial
from ray.tune.experiment.config_parser import _create_trial_from_spec, _make_parser
from ray.tune.registry import _Registry
from ray.tune.utils.object_cache import _ObjectCache

from orch.core.interruption import leaving_at_once
from orch.running.failures import Failure, TrialError, describe
from orch.running.options import STOP_SECONDS
from orch.running.quarantine import Place
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


def shut_down() -> None:
    """Stop Ray, or leave its cluster, without losing our handler of SIGTERM.

    The end of Ray 2.60's C++ sets what SIGTERM does to the default, which Python does not notice. Ray then waits for
    its processes, a second or more, and a SIGTERM would end this process without a word.
    """
    disconnect: Any = GlobalState.disconnect

    def handle_again(self: Any) -> None:
        handler = signal.getsignal(signal.SIGTERM)
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)
        disconnect(self)

    with leaving_at_once(), _replaced(GlobalState, "disconnect", handle_again):
        ray.shutdown()


class KeptActors(_ObjectCache):
    """The workers that wait for a unit. While there are more units to come, none of them is ended.

    Tune 2.60 keeps a worker only if the next trial was there before the last one ended. For that trial it has asked for
    another worker by then, with a placement group that is removed unused: twice the work for each trial.
    """

    def __init__(self, more_to_come: Callable[[], bool]):
        super().__init__(may_keep_one=True)
        self._more_to_come = more_to_come

    def cache_object(self, key: Any, obj: Any) -> bool:
        self._cached_objects[key].append(obj)
        self._num_cached_objects += 1
        return True

    def flush_cached_objects(self, force_all: bool = False) -> Generator[Any, None, None]:
        if force_all or not self._more_to_come():
            yield from super().flush_cached_objects(force_all)


class Forgetful(set[TuneTrial]):
    """A set that stays empty, in place of those in which Tune keeps trials that have ended."""

    def add(self, element: TuneTrial) -> None:
        pass


ENDED = (TuneTrial.TERMINATED, TuneTrial.ERROR)
MOST_ENDED = 64
"""Tune's list of trials has about as many that have ended, at most, as ones that have not, and this many more."""


def forget_ended(trials: list[TuneTrial]) -> None:
    """Take trials that have ended out of Tune's own list of all its trials, once they are most of it.

    Tune 2.60 goes through that list several times for each unit, so that a unit would take the longer the more there
    were before, and so would the driver's memory grow. The last one stays: Tune would read an empty list from disk.
    """
    num_ended = sum(trial.status in ENDED for trial in trials) if len(trials) > MOST_ENDED else 0
    if num_ended > max(MOST_ENDED, len(trials) - num_ended):
        trials[:-1] = [trial for trial in trials[:-1] if trial.status not in ENDED]


def controller_for(more_to_come: Callable[[], bool]) -> AbstractContextManager[None]:
    """Set what Tune 2.60 has no settings for. Workers are kept while there are more units to come.

    They get `STOP_SECONDS` to stop, and not ten seconds. Trials that have ended are forgotten: see `forget_ended`.
    """
    original = TuneController.__init__

    def initialise(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        self._actor_force_cleanup_timeout = STOP_SECONDS
        self._actor_cache = KeptActors(more_to_come)
        self._stopped_trials, self._failed_trials, self._trials_to_cache = Forgetful(), Forgetful(), Forgetful()

    return _replaced(TuneController, "__init__", initialise)


def no_state_of_trials() -> AbstractContextManager[None]:
    """Leave the trials out of the state that Tune writes at the end, and only reads to see that it is there."""
    return _replaced(TuneController, "_get_trial_checkpoints", lambda self: {})


@contextmanager
def remembered_trainables() -> Iterator[None]:
    """Ask Ray's control store for a class of workers once. Tune 2.60 asks five times for each trial."""
    get: Any = _Registry.get
    contains: Any = _Registry.contains
    found: dict[tuple[str, str], Any] = {}

    def get_once(self: Any, category: str, name: str) -> Any:
        if (category, name) not in found:
            found[category, name] = get(self, category, name)
        return found[category, name]

    def contains_once(self: Any, category: str, name: str) -> bool:
        return (category, name) in found or bool(contains(self, category, name))

    with _replaced(_Registry, "get", get_once), _replaced(_Registry, "contains", contains_once):
        yield


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


def drain_this_node(reason: str) -> bool:
    """Have Ray start nothing more on this machine, and say whether it agreed. What runs here goes on.

    `ray drain-node` does the same. The call wants a time by which the machine will be gone, or 0 if that is unknown.
    """
    worker: Any = ray._private.worker.global_worker
    reasons: Any = autoscaler_pb2  # generated, without types
    node = ray.get_runtime_context().get_node_id()
    preemption = reasons.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
    try:
        accepted, _ = worker.gcs_client.drain_node(node, preemption, reason, 0)
    except Exception:  # the head may be gone, too
        return False
    return bool(accepted)


def this_place() -> Place:
    """Return the place on which this worker runs."""
    context = ray.get_runtime_context()
    devices = context.get_accelerator_ids().get("GPU", [])
    return Place(context.get_node_id(), os.uname().nodename, ",".join(map(str, devices)))


def machine_of(tune_trial: TuneTrial) -> Place | None:
    """Return the machine on which the worker of a Tune trial runs, which it may be lost too early to report."""
    actor = tune_trial.temporary_state.ray_actor
    return None if actor is None else _machine_of_actor(actor._actor_id.hex())


@functools.lru_cache(maxsize=1 << 12)
def _machine_of_actor(actor_id: str) -> Place | None:
    """Ask Ray's control store, once for each worker process."""
    found: Any = ray._private.state.actors(actor_id)
    node = found.get("Address", {}).get("NodeID")
    nodes: Any = ray.nodes
    hosts = {each["NodeID"]: each["NodeManagerHostname"] for each in nodes()}
    return Place(node, hosts.get(node, "")) if node else None


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
