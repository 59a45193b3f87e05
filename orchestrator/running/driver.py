"""Everything Ray Tune. Tune schedules; the store remembers: nothing here needs to survive the driver.

A Tune trial is one attempt at one unit (a pack of trials). Tune never retries (`max_failures=0`): a unit that failed
comes back to our search algorithm, which knows a lost worker from a bug and issues it again or gives it up.

Live objects are kept in `RUNS` and found by name, because Tune pickles what it is handed.
"""

import logging
import math
import os
import shutil
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import ray
from ray import cloudpickle, tune
from ray.tune.experiment import Trial as TuneTrial
from ray.tune.experiment.config_parser import _create_trial_from_spec, _make_parser
from ray.tune.schedulers import TrialScheduler
from ray.tune.search.search_algorithm import SearchAlgorithm

from orch.core.errors import OrchError
from orch.running import provenance
from orch.running.failures import SAME_IN_A_ROW, Failure, worth_another_try
from orch.running.machines import Machines
from orch.running.ray_compat import failure_of, losses_as_actor_errors, no_ray_on_stdout, patient_stops
from orch.running.units import Listener, Turn, Work
from orch.running.worker import DEFAULT_TRAINING, SUMMARY, Unit, UnitRun, check_shared
from orch.store import Outcome, Store
from orch.usercode import codes_defining

REPORT_SECONDS = 2.0
"""A worker reports about this often. The controller handles one event at a time: reports are dear."""


class BrokenSweep(OrchError):
    """Attempt after attempt fails alike."""


@dataclass
class RunOptions:
    driver_id: str
    store: str
    checkpoint_seconds: float = 60.0
    hang_seconds: float = 1800.0
    weights_limit: int = 8_000_000
    training: str = DEFAULT_TRAINING


def run(work: Sequence[Work], machines: Machines, options: RunOptions, listener: Listener) -> None:
    """Run it all, in this order as far as workers come free. Returns when nothing is left or the listener says stop."""
    fit(Run(deque(work), options, machines, listener))


def fit(state: "Run", worker: "type[Worker] | None" = None, scheduler: TrialScheduler | None = None) -> None:
    """Let Tune run what `state` hands out, by workers of this kind. Returns when nothing is left or it is stopping."""
    machines, run_id = state.machines, state.options.driver_id
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
    RUNS[run_id] = state
    resources = {"cpu": 1.0} | ({"gpu": machines.gpus_per_trial} if machines.device == "cuda" else {})
    scratch = tempfile.mkdtemp(prefix="orch-tune-")
    try:
        tuner = tune.Tuner(
            tune.with_resources(worker or Worker, resources),
            tune_config=tune.TuneConfig(search_alg=_Queue(run_id), scheduler=scheduler, reuse_actors=True),
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=scratch,
                verbose=0,
                callbacks=[_Watch(run_id)],
                stop=_Stop(run_id),
                failure_config=tune.FailureConfig(max_failures=0),
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            ),
        )
        with losses_as_actor_errors(), patient_stops(), no_ray_on_stdout():
            tuner.fit()
    finally:
        del RUNS[run_id]
        shutil.rmtree(scratch, ignore_errors=True)
    if state.broken is not None:
        raise state.broken


class Run:
    """The state of one sweep in the driver."""

    def __init__(self, queue: deque[Work], options: RunOptions, machines: Machines, listener: Listener):
        self.queue, self.options, self.machines, self.listener = queue, options, machines, listener
        self.flying: dict[str, tuple[TuneTrial, Work]] = {}
        self.hung: set[str] = set()
        self.streak: list[str] = []
        self.broken: OrchError | None = None
        self.count = 0
        self.store = Store.open(options.store)
        self.git_commit, self.git_dirty = provenance.git_state()

    @property
    def stopping(self) -> bool:
        return self.broken is not None or self.listener.should_stop()

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing to hand out, now and once those that fly have landed."""
        return not self.queue

    def next_work(self) -> Work | None:
        for _ in range(len(self.queue)):
            work = self._fair_share(self.queue.popleft())
            turn = self.listener.turn(work)
            if turn is Turn.NOW:
                return work
            if turn is Turn.LATER:
                self.queue.append(work)
            elif turn is Turn.APART:
                self.queue.extend(work.apart())
        return None

    def _fair_share(self, work: Work) -> Work:
        """A whole pack while there is enough for all workers; towards the end, no more than leaves none idle."""
        slots = self.machines.slots
        if len(work.open_trials) == 1 or len(self.queue) >= slots:
            return work
        waiting = len(work.open_trials) + sum(len(other.open_trials) for other in self.queue)
        work, rest = work.part(math.ceil(waiting / slots))
        if rest is not None:
            self.queue.appendleft(rest)
        return work

    def unit(self, work: Work) -> Unit:
        work.attempts = {trial.id: uuid.uuid4().hex for trial in work.open_trials}
        work.heard_at = time.monotonic()
        options = self.options
        return Unit(
            trials=[trial.to_dict() for trial in work.open_trials],
            attempts=work.attempts,
            store=options.store,
            driver_id=options.driver_id,
            device=self.machines.device,
            threads=1,
            checkpoint_seconds=options.checkpoint_seconds,
            weights_limit=options.weights_limit,
            training=options.training,
            code=[code.to_dict() for code in codes_defining(work.open_trials)],
            git_commit=self.git_commit,
            git_dirty=self.git_dirty,
        )

    def ended(self, tune_id: str, error: bool) -> None:
        tune_trial, work = self.flying.pop(tune_id)
        if not error:
            self.streak.clear()
            return
        failure = self._failure(tune_id, tune_trial)
        self._take_note_of_rows(work)
        if not work.open_trials:
            self.streak.clear()
            return
        work.history.append(failure)
        if failure.store_lost:
            self.broken = OrchError(failure.message)
        elif not failure.written:
            try:
                self._end_attempts(work, failure)
            except OrchError as lost:
                self.broken = lost
        pieces = self.pieces(work)
        again = bool(pieces) and not self.stopping
        if failure.outcome is Outcome.FAILED:  # a lost machine takes many trials with it, all alike, and breaks nothing
            self.streak.append(failure.signature)
        if self.broken is None and len(self.streak) >= SAME_IN_A_ROW and len(set(self.streak[-SAME_IN_A_ROW:])) == 1:
            self.broken = BrokenSweep(
                f"{SAME_IN_A_ROW} attempts in a row failed alike ({failure.signature}): nothing more was started."
                " Mend it, then run orch resume; orch failures has the traceback"
            )
        self.listener.failed(work, failure, again)
        if again:
            self.queue.extend(pieces)

    def pieces(self, work: Work) -> list[Work]:
        """What is tried again of a unit that has failed, the last failure in its history."""
        return _pieces(work)

    def reported(self, tune_id: str, result: dict[str, Any]) -> None:
        """A worker tells how far it is."""
        work = self.flying[tune_id][1]
        work.heard_at, work.step = time.monotonic(), result["step"]
        for summary in result["finished"]:
            work.finished.add(summary["trial_id"])
            self.listener.finished(work, summary)

    def _take_note_of_rows(self, work: Work) -> None:
        """A worker may be lost after it has written a result and before it could tell."""
        try:
            rows = self.store.read("trials", SUMMARY).to_pylist()
        except OrchError:
            return  # a store out of reach: the attempt counts as lost, and of two results the first counts
        attempts = set(work.attempts.values())
        for row in rows:
            if row["attempt_id"] in attempts and row["trial_id"] not in work.finished:
                work.finished.add(row["trial_id"])
                self.listener.finished(work, row)

    def _failure(self, tune_id: str, tune_trial: TuneTrial) -> Failure:
        if tune_id in self.hung:
            self.hung.discard(tune_id)
            seconds = self.options.hang_seconds
            return Failure(Outcome.HUNG, "hung", f"no progress for {seconds:g} s: the worker was ended")
        return failure_of(_raised(tune_trial), on_cluster=bool(self.machines.address))

    def _end_attempts(self, work: Work, failure: Failure) -> None:
        for trial_id, attempt_id in work.attempts.items():
            if trial_id in work.finished:
                continue
            row = {
                "attempt_id": attempt_id,
                "trial_id": trial_id,
                "driver_id": self.options.driver_id,
                "event": "end",
                "at": datetime.now(UTC),
                "host": os.uname().nodename,
                "outcome": str(failure.outcome),
                "step": work.step,
                "error_type": failure.signature,
                "error_signature": failure.signature,
                "error_message": failure.message,
                "traceback": failure.trace,
            }
            self.store.write("attempts", [row])

    def watch(self) -> None:
        """Now and then: tell the listener, and end workers that make no progress."""
        for tune_id, (tune_trial, work) in list(self.flying.items()):
            actor = tune_trial.temporary_state.ray_actor
            if actor is None or tune_trial.status != TuneTrial.RUNNING:
                work.heard_at = time.monotonic()
            elif time.monotonic() - work.heard_at > self.options.hang_seconds and tune_id not in self.hung:
                self.hung.add(tune_id)
                ray.kill(actor)
        self.listener.tick([work for _, work in self.flying.values()], len(self.queue))


def _pieces(work: Work) -> list[Work]:
    """A pack that has failed twice, or at once for want of memory or of progress, is tried trial by trial: then each
    has only itself to blame."""
    last = work.history[-1]
    if len(work.open_trials) == 1:
        return [work] if worth_another_try(work.history) else []
    too_much = last.outcome in (Outcome.OUT_OF_MEMORY, Outcome.HUNG)
    blamed = [failure for failure in work.history if not failure.blameless]
    return work.apart() if too_much or len(blamed) > 1 else [work]


def _raised(tune_trial: TuneTrial) -> BaseException | None:
    path = tune_trial.pickled_error_file
    if path is None or not os.path.exists(path):
        return tune_trial.get_error()
    with open(path, "rb") as file:
        return cloudpickle.load(file)


RUNS: dict[str, Run] = {}


class _Queue(SearchAlgorithm):
    """An explicit list of work, longest first; what failed comes back here."""

    def __init__(self, run_id: str):
        self._run_id = run_id
        self._parser = _make_parser()
        self._spec: dict[str, Any] = {}

    def add_configurations(self, experiments: Any) -> None:
        self._spec = experiments[0].spec

    @property
    def total_samples(self) -> int:
        return len(RUNS[self._run_id].queue)

    def next_trial(self) -> TuneTrial | None:
        state = RUNS[self._run_id]
        # On a machine of our own, more than there are workers would only queue for placement groups they never use,
        # at twice the cost per trial; on a cluster it is what makes it grow.
        full = state.machines.address is None and len(state.flying) >= state.machines.slots
        work = None if full or state.stopping or self._finished else state.next_work()
        if work is None:
            return None
        state.count += 1
        tune_id = f"{state.count:07d}"
        spec = self._spec | {"config": {"unit": dict(state.unit(work))}}
        tune_trial = _create_trial_from_spec(spec, self._parser, experiment_tag=tune_id, trial_id=tune_id)
        state.flying[tune_id] = tune_trial, work
        return tune_trial

    def on_trial_complete(self, trial_id: str, result: dict | None = None, error: bool = False) -> None:
        RUNS[self._run_id].ended(trial_id, error)

    def is_finished(self) -> bool:
        state = RUNS[self._run_id]
        return self._finished or (not state.flying and (state.exhausted or state.stopping))


class _Watch(tune.Callback):
    def __init__(self, run_id: str):
        self._run_id = run_id
        self._ticked_at = 0.0

    def on_trial_start(self, iteration: int, trials: list, trial: TuneTrial, **info: Any) -> None:
        state = RUNS[self._run_id]
        if trial.trial_id in state.flying:
            work = state.flying[trial.trial_id][1]
            work.heard_at = time.monotonic()
            state.listener.started(work)

    def on_trial_result(self, iteration: int, trials: list, trial: TuneTrial, result: dict, **info: Any) -> None:
        state = RUNS[self._run_id]
        if trial.trial_id in state.flying:
            state.reported(trial.trial_id, result)

    def on_step_end(self, iteration: int, trials: list, **info: Any) -> None:
        if time.monotonic() - self._ticked_at > 0.2:
            self._ticked_at = time.monotonic()
            RUNS[self._run_id].watch()


class _Stop(tune.Stopper):
    def __init__(self, run_id: str):
        self._run_id = run_id

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        return RUNS[self._run_id].stopping


class Worker(tune.Trainable):
    """Ray's side of a worker process. It serves one unit after another: starting a process costs seconds."""

    def setup(self, config: dict[str, Any]) -> None:
        self._running: UnitRun | None = None
        self._unit = config["unit"]

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self._running = None
        self._unit = new_config["unit"]
        return True

    def step(self) -> dict[str, Any]:
        # Not in setup: an exception in a step is reported with its traceback, one in setup as a lost actor.
        if self._running is None:
            check_shared(self._unit)
            self._running = self.open(self._unit)
        return self._running.run_for(REPORT_SECONDS)

    def open(self, unit: Unit) -> UnitRun:
        return UnitRun(unit)

    def cleanup(self) -> None:
        if self._running is not None:
            self._running.stop()
