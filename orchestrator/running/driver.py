"""The driver's use of Ray Tune. Tune schedules and the store remembers: no state here outlives the driver.

A Tune trial is one attempt at one unit, which is a pack of trials. Tune never retries (`max_failures=0`): a failed unit
returns to our search algorithm, which distinguishes a lost worker from a bug, and queues the unit again or gives up.

Live objects are kept in `RUNS` and looked up by the driver's id, because Tune pickles what it is given.
"""

import logging
import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

from ray import tune
from ray.tune.experiment import Trial as TuneTrial
from ray.tune.progress_reporter import TrialProgressCallback
from ray.tune.schedulers import TrialScheduler
from ray.tune.search.search_algorithm import SearchAlgorithm

from orch.core.scratch import scratch_folder
from orch.running.failures import Failure, TrialError
from orch.running.forked_unit import ForkedUnit, open_unit
from orch.running.local_ray import own_folder
from orch.running.quarantine import quarantines
from orch.running.ray_compat import (
    controller_for,
    create_tune_trial,
    drain_this_node,
    forget_ended,
    losses_as_actor_errors,
    machine_of,
    no_ray_on_stdout,
    no_state_of_trials,
    remembered_trainables,
    this_place,
)
from orch.running.reclaim import reclaim_notice
from orch.running.run_state import RunState
from orch.running.store_address import handed_out, location_at
from orch.running.worker import UnitRun, read_driver
from orch.running.worker_messages import UnitRequest
from orch.store import Outcome

REPORT_SECONDS = 2.0
"""A worker reports about this often. Tune's controller handles one report at a time, so reports are expensive."""
TICK_SECONDS = 0.2
RUNS: dict[str, RunState] = {}


def run(state: RunState, worker: "type[Worker] | None" = None, scheduler: TrialScheduler | None = None) -> None:
    """Let Tune run the units of `state` on workers of this class, until none is left or the run is stopping."""
    machines, run_id = state.machines, state.driver_id
    for name, value in {
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
        "TUNE_GLOBAL_CHECKPOINT_S": "86400",
        "TUNE_MAX_PENDING_TRIALS_PG": str(machines.slots + 1),
        "TUNE_DISABLE_SIGINT_HANDLER": "1",
        "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
        "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
        "RAY_AIR_NEW_OUTPUT": "0",
    }.items():
        os.environ[name] = value
    for name in ("ray", "ray.tune", "ray.train", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    resources = {"cpu": 1.0} | ({"gpu": machines.gpus_per_trial} if machines.device == "cuda" else {})
    with scratch_folder("tune", own_folder()) as scratch, _in_runs(state):
        tuner = tune.Tuner(
            tune.with_resources(worker or Worker, resources),
            tune_config=tune.TuneConfig(search_alg=_Queue(run_id), scheduler=scheduler, reuse_actors=True),
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=str(scratch),
                verbose=0,
                progress_reporter=_NoReports(),
                callbacks=[_Watch(run_id)],
                stop=_Stop(run_id),
                failure_config=tune.FailureConfig(max_failures=0),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            ),
        )
        with (
            controller_for(lambda: state.more_to_come),
            losses_as_actor_errors(),
            no_state_of_trials(),
            remembered_trainables(),
            no_ray_on_stdout(),
        ):
            tuner.fit()
        state.settle(wait=True)
    if state.error is not None:
        raise state.error


@contextmanager
def _in_runs(state: RunState) -> Iterator[None]:
    """Let Tune's callbacks find the run, and its workers the store."""
    RUNS[state.driver_id] = state
    try:
        with handed_out(state.store_address, state.store.uri):
            yield
    finally:
        del RUNS[state.driver_id]


class _Queue(SearchAlgorithm):
    """Gives Tune the units of a run, one after the other. Failed units return to the run's queue."""

    def __init__(self, run_id: str):
        self._run_id = run_id
        self._spec: dict[str, Any] = {}

    def add_configurations(self, experiments: Any) -> None:
        self._spec = experiments[0].spec

    @property
    def total_samples(self) -> int:
        return len(RUNS[self._run_id].queue)

    def next_trial(self) -> TuneTrial | None:
        state = RUNS[self._run_id]
        state.settle()  # if nothing runs, Tune waits here for the next unit, which may be one that was lost
        # Units beyond the number of workers would wait for placement groups that they never use. On a cluster that may
        # grow beyond what is known, waiting units are what makes it grow.
        full = not state.machines.may_grow and state.num_taken_slots >= state.machines.slots
        unit = None if full or state.stopping or self._finished else state.next_unit()
        if unit is None:
            return None
        state.num_started += 1
        tune_id = f"{state.num_started:07d}"
        spec = self._spec | {"config": {"request": dict(state.request(unit))}}
        tune_trial = create_tune_trial(spec, tune_id)
        state.running_units[tune_id] = tune_trial, unit
        return tune_trial

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        state = RUNS[self._run_id]
        ended = state.running_units.get(trial_id)
        state.ended(trial_id, error)
        if ended is not None:
            ended[0].config = {}  # Tune keeps all its trials, and the message to the worker is the largest part of one

    def is_finished(self) -> bool:
        state = RUNS[self._run_id]
        return self._finished or (state.idle and (state.exhausted or state.stopping))


class _Watch(TrialProgressCallback):
    """Passes Tune's events on to the run.

    It is of a class of which Tune adds one of its own if it is given none. That one would remember every trial.
    """

    def __init__(self, run_id: str):
        self._run_id = run_id
        self._last_tick_at = 0.0

    def on_trial_start(self, iteration: int, trials: list[TuneTrial], trial: TuneTrial, **info: Any) -> None:
        state = RUNS[self._run_id]
        if trial.trial_id in state.running_units:
            unit = state.running_units[trial.trial_id][1]
            unit.last_report_at = time.monotonic()
            unit.place = machine_of(trial)
            state.listener.started(unit)

    def on_trial_result(
        self, iteration: int, trials: list[TuneTrial], trial: TuneTrial, result: dict[str, Any], **info: Any
    ) -> None:
        state = RUNS[self._run_id]
        if trial.trial_id in state.running_units:
            state.reported(trial.trial_id, result)

    def on_trial_complete(self, iteration: int, trials: list[TuneTrial], trial: TuneTrial, **info: Any) -> None:
        pass

    def on_trial_error(self, iteration: int, trials: list[TuneTrial], trial: TuneTrial, **info: Any) -> None:
        pass

    def on_step_end(self, iteration: int, trials: list[TuneTrial], **info: Any) -> None:
        forget_ended(trials)
        if time.monotonic() - self._last_tick_at > TICK_SECONDS:
            self._last_tick_at = time.monotonic()
            RUNS[self._run_id].watch()


class _NoReports(tune.ProgressReporter):
    """Shows nothing. In a notebook, Tune's default clears the output of the cell, whatever `verbose` says."""

    def should_report(self, trials: list[TuneTrial], done: bool = False) -> bool:
        return False

    def report(self, trials: list[TuneTrial], done: bool, *sys_info: str) -> None:
        pass


class _Stop(tune.Stopper):
    """Ends all of Tune's trials once the run is stopping; before that, those that no longer have to occupy a place."""

    def __init__(self, run_id: str):
        self._run_id = run_id

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return RUNS[self._run_id].lets_go(trial_id)

    def stop_all(self) -> bool:
        return RUNS[self._run_id].stopping


class Worker(tune.Trainable):
    """A worker process, as Ray sees it. It trains one unit after another, because starting a process takes seconds."""

    def setup(self, config: dict[str, Any]) -> None:
        self._unit_run: UnitRun | ForkedUnit | None = None
        self._request = config["request"]
        self._place = this_place()
        self._refuses = False
        self._asked_to_end = False
        if self._request["on_cluster"]:
            # Ray would end the process at once. A second signal still does.
            end_at_once = signal.signal(signal.SIGTERM, self._ask_to_end)
            self._end_at_once = end_at_once if callable(end_at_once) else signal.SIG_DFL

    def _ask_to_end(self, number: int, frame: FrameType | None) -> None:
        self._asked_to_end = True
        signal.signal(signal.SIGTERM, self._end_at_once)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self._unit_run, self._refuses = None, False
        self._request = new_config["request"]
        return True

    def step(self) -> dict[str, Any]:
        # Not in setup: an exception in a step is reported with its traceback, one in setup as a lost actor.
        try:
            if self._unit_run is None:
                self._request = self._request | {"store": location_at(self._request["store"])}
                self._refuses = self._refuses or quarantines(read_driver(self._request), self._place)
                if self._refuses:
                    time.sleep(REPORT_SECONDS)  # while this worker waits here, Ray gives its place to no other
                    return {"refused": True, "done": False, "place": self._place.to_dict()}
                self._leave_reclaimed()
                self._unit_run = self.open(self._request)
            report = self._unit_run.run_for(REPORT_SECONDS)
            if not report["done"]:
                self._leave_reclaimed(report["finished"])
            return report | {"place": self._place.to_dict()}
        except TrialError as error:
            raise TrialError(replace(error.failure, place=self._place)) from error

    def _leave_reclaimed(self, finished: Iterable[dict[str, Any]] = ()) -> None:
        """Leave the unit to another worker if this machine or this process is about to be gone.

        Ray is told to start nothing more on a machine that is about to be gone. `finished` are summaries of trials
        whose results were not reported to the driver yet.
        """
        notice = reclaim_notice() if self._request["on_cluster"] else None
        why = notice or ("the worker was asked to end (SIGTERM)" if self._asked_to_end else None)
        if why is None:
            return
        if self._unit_run is not None:
            self._unit_run.stop()
        if notice is not None and not drain_this_node(notice):
            time.sleep(REPORT_SECONDS)  # another unit may come: it is not to come at once and often
        left = Failure(Outcome.LOST, "reclaimed machine", why, blameless=True, written=True)
        raise TrialError(replace(left, finished=tuple(finished)))

    def open(self, request: UnitRequest) -> UnitRun | ForkedUnit:
        """Start an attempt at a unit."""
        return open_unit(request)

    def cleanup(self) -> None:
        if self._unit_run is not None:
            self._unit_run.stop()
