"""The private parts of Ray that the driver uses. If a test fails after an upgrade, ray_compat must change."""

import ctypes
import inspect
import os
import signal

import pytest
import ray
from ray._private.state import GlobalState
from ray.air.execution._internal.actor_manager import RayActorManager
from ray.core.generated import autoscaler_pb2
from ray.exceptions import NodeDiedError, OutOfMemoryError, RayActorError
from ray.experimental import internal_kv
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial as TuneTrial
from ray.tune.experiment import config_parser
from ray.tune.registry import _Registry

from orch.core.interruption import ending_cleanly
from orch.running import ray_compat
from tests.process_tree import handles


def test_tune_still_has_the_timeout_that_is_set():
    """Otherwise workers are killed ten seconds after a sweep is stopped, before they have written their checkpoint."""
    assert "self._actor_force_cleanup_timeout" in inspect.getsource(TuneController)


def test_workers_are_kept_while_there_are_more_units():
    """Otherwise every unit asks for a worker and a placement group that it never uses."""
    assert "self._actor_cache = _ObjectCache(" in inspect.getsource(TuneController.__init__)
    more = [True]
    cache = ray_compat.KeptActors(lambda: more[0])
    assert cache.cache_object("one kind", "first")
    assert cache.cache_object("one kind", "second")
    assert list(cache.flush_cached_objects()) == []
    more[0] = False
    assert list(cache.flush_cached_objects()) == ["first", "second"]
    assert cache.num_cached_objects == 0


def test_tunes_trials_are_forgotten_once_most_of_them_have_ended():
    """Otherwise a unit takes the longer the more there were before it: see tests/engine/test_many_units.py."""
    source = inspect.getsource(TuneController)
    assert "self._callbacks.on_step_end(iteration=self._iteration, trials=self._trials)" in source
    for name in ("_stopped_trials", "_failed_trials", "_trials_to_cache"):
        assert f"self.{name}: Set[Trial] = set()" in source
    trials = [TuneTrial("stub", stub=True, trial_id=str(number)) for number in range(200)]
    for trial in trials[:190]:
        trial.set_status(TuneTrial.ERROR if trial.trial_id == "7" else TuneTrial.TERMINATED)
    listed = list(trials)
    ray_compat.forget_ended(listed)
    assert listed == trials[190:]
    ray_compat.forget_ended(listed)
    assert listed == trials[190:]
    for trial in listed:
        trial.set_status(TuneTrial.TERMINATED)
    listed = listed * 20
    ray_compat.forget_ended(listed)
    assert listed == trials[-1:]
    kept = ray_compat.Forgetful()
    kept.add(trials[0])
    assert not kept


def test_a_class_of_workers_is_asked_for_once(monkeypatch):
    asked = []
    assert list(inspect.signature(_Registry.get).parameters) == ["self", "category", "key"]
    monkeypatch.setattr(_Registry, "get", lambda self, category, key: asked.append(key) or key.upper())
    monkeypatch.setattr(_Registry, "contains", lambda self, category, key: asked.append(key) or False)
    registry = _Registry("test")
    with ray_compat.remembered_trainables():
        assert not registry.contains("trainable", "worker")
        assert [registry.get("trainable", "worker") for _ in range(3)] == ["WORKER"] * 3
        assert registry.contains("trainable", "worker")
    assert asked == ["worker", "worker"]
    assert not registry.contains("trainable", "worker")


def test_tune_still_takes_the_state_of_its_trials_from_the_method_that_is_replaced():
    """Otherwise the driver writes the state of all trials, which takes longer the more there are."""
    assert "self._get_trial_checkpoints().values()" in inspect.getsource(TuneController.save_to_dir)


def test_the_machine_of_a_worker_can_still_be_found():
    """Otherwise a machine that loses every worker at once is not left alone."""
    assert next(iter(inspect.signature(ray._private.state.actors).parameters)) == "actor_id"
    assert '"NodeID"' in inspect.getsource(type(ray._private.state.state)._gen_actor_info)


def test_ray_still_prints_through_the_function_that_is_silenced():
    """Otherwise Ray's messages about lost machines appear in the output of a sweep."""
    original = ray._private.worker.print_to_stdstream
    with ray_compat.no_ray_on_stdout():
        assert ray._private.worker.print_to_stdstream is not original
    assert ray._private.worker.print_to_stdstream is original


@pytest.mark.parametrize(
    ("loss", "expected"),
    [(OutOfMemoryError("full"), ray_compat.KilledForMemory), (NodeDiedError("gone"), ray_compat.WorkerGone)],
)
def test_losses_of_workers_reach_tune_as_actor_errors(monkeypatch, loss, expected):
    """Otherwise one worker killed for memory, or one lost node, ends the whole sweep."""
    received = []
    assert list(inspect.signature(RayActorManager._actor_task_failed).parameters) == [
        "self",
        "tracked_actor_task",
        "exception",
    ]
    monkeypatch.setattr(RayActorManager, "_actor_task_failed", lambda self, task, exception: received.append(exception))
    with ray_compat.losses_as_actor_errors():
        RayActorManager._actor_task_failed(None, None, loss)
        RayActorManager._actor_task_failed(None, None, ValueError("the trial's own"))
    assert [type(error) for error in received] == [expected, ValueError]
    assert isinstance(received[0], RayActorError)


def test_tune_trials_can_be_created_with_an_id_of_our_own():
    """Otherwise the driver cannot give Tune its units."""
    assert callable(config_parser._make_parser)
    parameters = inspect.signature(config_parser._create_trial_from_spec).parameters
    assert list(parameters)[:2] == ["spec", "parser"]


def test_tune_trials_still_keep_their_error_and_their_actor():
    """Otherwise failures lose their traceback, and a worker that hangs cannot be ended."""
    assert isinstance(TuneTrial.pickled_error_file, property)
    assert callable(TuneTrial.get_error)
    assert "self.ray_actor" in inspect.getsource(type(TuneTrial("stub", stub=True).temporary_state))


def test_ray_still_takes_the_request_to_drain_a_machine():
    """Otherwise new work starts on a machine that is about to be reclaimed."""
    from ray.scripts import scripts

    asks = inspect.getsource(scripts.drain_node.callback)
    assert "gcs_client.drain_node(\n        node_id,\n" in asks
    assert autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")


def test_ray_still_starts_through_the_functions_that_are_replaced():
    """Otherwise a signal crashes Ray while it starts, a secret reaches its logs, or it listens on every interface."""
    ray_init = inspect.getsource(ray._private.worker)
    assert "ray._private.utils.set_sigterm_handler(sigterm_handler)" in ray_init
    assert "entrypoint=ray._private.utils.get_entrypoint_name()" in ray_init
    assert "if not ray_constants.ENABLE_RAY_CLUSTER" in inspect.getsource(ray._private.services.get_node_ip_address)
    assert "process = ConsolePopen(" in inspect.getsource(ray._private.services.start_ray_process)
    with ray_compat.considerate_start(only_loopback=True):
        assert ray._private.services.get_node_ip_address() == "127.0.0.1"
        before = signal.getsignal(signal.SIGTERM)
        ray._private.utils.set_sigterm_handler(lambda *ignored: None)
        assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_is_handled_while_ray_ends_its_processes(monkeypatch):
    """Otherwise a SIGTERM in the last second of a sweep ends the driver without a word, with exit code -15."""
    source = inspect.getsource(ray.shutdown)
    places = [
        source.index(call)
        for call in ("core_worker.shutdown_driver()", "state.state.disconnect()", "kill_all_processes(")
    ]
    assert places == sorted(places)
    during = []

    def shutdown():
        ctypes.CDLL(None).signal(signal.SIGTERM, None)  # as Ray's C++ does it: Python does not notice
        during.append(handles(os.getpid(), signal.SIGTERM))
        GlobalState().disconnect()
        during.append(handles(os.getpid(), signal.SIGTERM))

    monkeypatch.setattr(ray, "shutdown", shutdown)
    with ending_cleanly():
        ray_compat.shut_down()
    assert during == [False, True]


def test_the_recorded_command_line_has_no_credentials(monkeypatch):
    monkeypatch.setattr(ray._private.utils, "get_entrypoint_name", lambda: "orch sweep --store s3://me:hunter2@bucket")
    with ray_compat.considerate_start(only_loopback=False):
        assert ray._private.utils.get_entrypoint_name() == "orch sweep --store s3://***@bucket"


def test_ray_still_has_a_memory_for_the_location_of_a_store():
    """Otherwise workers cannot find a store whose location contains credentials."""
    for name in ("_internal_kv_put", "_internal_kv_get", "_internal_kv_del"):
        assert callable(getattr(internal_kv, name))
