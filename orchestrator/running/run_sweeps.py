"""Run sweeps: plan them, take the lease, run the trials that have no result, and sum up."""

import functools
import operator
import os
import subprocess
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from orch.core.counted import counted
from orch.core.errors import OrchError
from orch.planning.estimate import Basis, Estimator
from orch.planning.gpu_share import num_sharing
from orch.planning.packs import make_packs, packed
from orch.planning.plan import Estimate, Plan, PlannedTrial, TrialState, shared_out, wall_seconds
from orch.planning.step_time import START_SECONDS, on_cpu
from orch.running.display import Display
from orch.running.failures import Failure
from orch.running.gpu_use import gpu_memory
from orch.running.lease import Lease
from orch.running.options import AUTO, DEFAULT_TRAINING, RunOptions
from orch.running.progress import Progress, ProgressCount, about, duration
from orch.running.requests import Request, record
from orch.running.session import Session, compacting, interruptible
from orch.running.trial_order import TrialOrder
from orch.running.units import Decider, Turn, Unit
from orch.store import Store
from orch.sweeps.memory import amount, check_memory, found_device
from orch.sweeps.recipe import check_device
from orch.sweeps.trial import Trial
from orch.usercode.probe import make_probe

if TYPE_CHECKING:
    from orch.running.machines import Machines

LONG_SECONDS = 24 * 3600
"""A run that takes longer than this is confirmed by the user first."""
READ_DONE_SECONDS = 1.0
REMEDY_IF_HELD = "wait for it, or share the work with --join"


@dataclass
class RunSummary:
    """The outcome of a run of sweeps."""

    finished: int
    failed: dict[str, int]
    """The number of trials that failed, by outcome."""
    left: int
    waiting: int
    """Trials that wait for the results of others."""
    seconds: float
    stopped: str
    """The reason for stopping before everything was done; empty if everything is."""
    trials: Mapping[str, Trial]
    """Every requested trial by its id, whether it was finished before or now."""
    left_out: int = 0
    """Trials that were not run because they cannot settle anything any more."""
    changes: tuple[str, ...] = ()
    """What user code has changed in the global state of its processes, a sentence for each change."""


def run_sweeps(
    requests: Sequence[Request],
    store: Store,
    options: RunOptions,
    say: Callable[[str], None],
    decider: Decider | None = None,
) -> RunSummary:
    """Run the requested trials that have no result in the store. It can be stopped at any moment and repeated.

    A `decider` orders them by what they are likely to settle, and leaves out those that settle nothing.
    """
    from orch.running.machines import connected, on_cluster

    # With another training, as in tests of the engine, no model is run.
    probe = make_probe(say) if options.training == DEFAULT_TRAINING else None
    plans = [request.plan(store, probe) for request in requests]
    for request, plan in zip(requests, plans, strict=True):
        if not plan.trials:
            raise OrchError(f"no trial matches {request.description}: change --where; orch plan shows all trials")
    todo = _to_do(plans)
    if not todo:
        waiting = _num_waiting(plans)
        trials = _all_trials(plans)
        return RunSummary(finished=0, failed={}, left=0, waiting=waiting, seconds=0.0, stopped="", trials=trials)
    if not on_cluster():
        check_memory((planned.trial for planned in todo.values()), options.device)
        check_device((planned.trial for planned in todo.values()), found_device(options.device))
    lease = Lease(store, "; ".join(request.description for request in requests), expects_others=options.join)
    if not options.join:
        lease.check_alone(REMEDY_IF_HELD)
    started = time.monotonic()
    given = options.gpus_per_trial
    with connected(options.num_cpus, 1.0 if given == AUTO else float(given), options.device) as machines:
        check_device((planned.trial for planned in todo.values()), machines.device)
        if given == AUTO and machines.device == "cuda":
            machines = _sharing(machines, todo, store, options, say)
        todo = _in_packs(todo, plans, machines, options)
        estimate = (0.0 if machines.address else START_SECONDS) + wall_seconds(todo.values(), machines.slots)
        say(f"running on {machines.description}; store {store.location}")
        most = "at most " if decider else ""
        say(f"{most}{counted(len(todo), 'trial')} to do, {about(estimate)}")
        if estimate > LONG_SECONDS and not options.confirm(f"This may take {duration(estimate)}. Start?"):
            raise OrchError("nothing was started: select fewer trials with --where, or add --yes")
        store.verify()
        with (
            lease,
            _Session(requests, plans, todo, store, machines, lease, options, decider) as session,
        ):
            if not options.join:  # Ray takes seconds to start, in which another driver may have started too
                lease.check_alone(REMEDY_IF_HELD)
            for request, plan in zip(requests, plans, strict=True):
                record(store, request, packed(plan, options.pack))
            try:
                summary = session.run()
            except OrchError as error:
                if options.on_finish:
                    _notify(options.on_finish, session.summary(stopped=str(error)))
                raise
    summary.seconds = time.monotonic() - started
    if options.on_finish:
        _notify(options.on_finish, summary)
    return summary


def _sharing(
    machines: "Machines",
    todo: Mapping[str, PlannedTrial],
    store: Store,
    options: RunOptions,
    say: Callable[[str], None],
) -> "Machines":
    """Return the machines with as many packs on a GPU as its memory holds."""
    memory = gpu_memory(store, machines.address is not None)
    if memory is None:
        say("--gpus-per-trial auto: the memory of the GPUs is not known, so each pack has one: run orch doctor first")
        return machines
    num_packs = num_sharing(make_packs(todo.values(), machines.device, options.pack), memory)
    say(f"--gpus-per-trial auto: {counted(num_packs, 'pack')} at a time on a GPU of {amount(memory)}")
    return replace(machines, gpus_per_trial=1 / num_packs)


def _in_packs(
    todo: Mapping[str, PlannedTrial], plans: Sequence[Plan], machines: "Machines", options: RunOptions
) -> dict[str, PlannedTrial]:
    """Return the trials with their share of the seconds of the packs that they would train in."""
    packs = make_packs(todo.values(), machines.device, options.pack)
    shared = shared_out(todo.values(), packs, _estimate_by_plan(plans, machines.device))
    return {each.id: each for each in shared}


def _estimate_by_plan(plans: Sequence[Plan], device: str) -> Estimate:
    """Return the estimates of trials, each by its own plan, which knows its code and how long its steps took."""
    assumed = Estimator(device="gpu")
    estimators = {planned.trial.stackable(): plan.estimator for plan in plans for planned in plan.trials}

    def estimate(trial: Trial, size: int) -> tuple[float, Basis]:
        known = estimators[trial.stackable()]
        # A store that knows only CPUs says nothing about a GPU.
        return (assumed if on_cpu(known.device) and not on_cpu(device) else known).estimate(trial, size)

    return estimate


def _each_once(plans: Sequence[Plan]) -> list[PlannedTrial]:
    """Return the trials of several plans, each once, with all sweeps that ask for it."""
    found: dict[str | Trial, PlannedTrial] = {}
    for planned in (planned for plan in plans for planned in plan.trials):
        key = planned.id or planned.trial  # a trial that waits has no id yet
        known = found.get(key)
        sweeps = planned.sweeps if known is None else tuple(dict.fromkeys((*known.sweeps, *planned.sweeps)))
        found[key] = replace(planned, sweeps=sweeps)
    return list(found.values())


def _to_do(plans: Sequence[Plan]) -> dict[str, PlannedTrial]:
    """Return the trials that a run would train now, each once, by their ids."""
    return {planned.id: planned for planned in _each_once(plans) if planned.left}


def _num_waiting(plans: Sequence[Plan]) -> int:
    """Count the trials that wait for others. Plans that overlap wait for the same results, which count once."""
    return functools.reduce(operator.or_, (plan.waiting for plan in plans), Counter[str]()).total()


def _all_trials(plans: Sequence[Plan]) -> dict[str, Trial]:
    return {planned.id: planned.trial for planned in _each_once(plans) if planned.id}


def _notify(command: str, summary: RunSummary) -> None:
    facts = {
        "ORCH_FINISHED": str(summary.finished),
        "ORCH_FAILED": str(sum(summary.failed.values())),
        "ORCH_LEFT": str(summary.left),
        "ORCH_STOPPED": summary.stopped,
    }
    subprocess.run(command, shell=True, env=os.environ | facts, check=False)


class _Session(Session):
    """One run of sweeps. It is the driver's listener."""

    def __init__(
        self,
        requests: Sequence[Request],
        plans: Sequence[Plan],
        todo: dict[str, PlannedTrial],
        store: Store,
        machines: Any,
        lease: Lease,
        options: RunOptions,
        decider: Decider | None = None,
    ):
        super().__init__(store, machines, lease, options)
        self._order = TrialOrder(decider, machines.device, options, self.log)
        self._requests, self._plans, self._todo = requests, plans, todo
        self._probe = make_probe() if options.training == DEFAULT_TRAINING else None
        self._num_finished = 0
        self._failed: dict[str, str] = {}
        self._waiting_for_others: set[str] = set()
        self._running: set[str] = set()
        self._unheard_of: set[str] = set()
        """Trials that were started, and of whose result no worker has told the driver."""
        self._done: set[str] = set()
        self._read_done_at = -READ_DONE_SECONDS

    def run(self) -> RunSummary:
        """Run everything that can be run, including trials that waited for results of this run."""
        from orch.running import driver
        from orch.running.run_state import RunState

        attempted: set[str] = set()
        # Workers of a driver that was killed may have written results after the plan was made.
        done = self._store.done()
        todo = {key: planned for key, planned in self._todo.items() if key not in done}
        with interruptible(self.interrupt, self._options.ends_process), compacting(self._store, self.log):
            while not self._stopped:
                todo = _in_packs(todo, self._plans, self._machines, self._options)
                self._start_display(todo)
                self.log.event("sweep started", trials=len(todo), machines=self._machines.description)
                options, units = self._options, self._order.units(todo)
                if self._lease.shared and units:  # drivers that begin at different places seldom want the same trials
                    first = int(self._lease.driver_id, 16) % len(units)
                    units = units[first:] + units[:first]
                if units:
                    lease = self._lease
                    with self._display or nullcontext():
                        driver.run(
                            RunState(
                                deque(units),
                                self._machines,
                                options,
                                self,
                                self._store,
                                lease.driver_id,
                                lease.number or 0,
                            )
                        )
                # Trials that waited for results may be able to run now.
                again = [request.plan(self._store, self._probe) for request in self._requests]
                for request, plan in zip(self._requests, again, strict=True):
                    record(self._store, request, packed(plan, options.pack))
                self._plans = again
                attempted |= self._order.attempted(todo)
                todo = {key: planned for key, planned in _to_do(again).items() if key not in attempted}
                if not todo or (self._order.leaves_out and not units):
                    break
        if self._stopped:
            # A worker that finishes a trial while the run stops writes the result, and has nobody left to tell.
            self._num_finished += len(self._unheard_of & self._store.done())
        return self.summary(self._stopped)

    def summary(self, stopped: str) -> RunSummary:
        """Sum up the run so far, and log that it ended; `stopped` is why, and empty if all is done."""
        failed = dict(Counter(self._failed.values()))
        left = max(0, len(_to_do(self._plans)) - len(self._failed))
        left, left_out = (0, left) if self._order.leaves_out and not stopped else (left, 0)
        waiting = _num_waiting(self._plans)
        self.log.event("sweep ended", finished=self._num_finished, failed=failed, left=left, stopped=stopped)
        trials = _all_trials(self._plans)
        changes = tuple(self.changes)
        return RunSummary(self._num_finished, failed, left, waiting, 0.0, stopped, trials, left_out, changes)

    def _start_display(self, todo: dict[str, PlannedTrial]) -> None:
        counts: dict[str, ProgressCount] = {}
        overall = ProgressCount()
        for planned in _each_once(self._plans):
            for count in (overall, *(counts.setdefault(name, ProgressCount()) for name in planned.sweeps)):
                count.expect(planned.state == TrialState.DONE)
        seconds = sum(planned.seconds for planned in todo.values())
        self._todo = todo
        self._progress = Progress(counts, seconds, overall)
        self._display = Display(self._progress, quiet=self._options.quiet)

    # The methods of the driver's listener.

    def arrange(self, queue: deque[Unit]) -> None:
        self._order.arrange(queue, self._todo)

    def turn(self, unit: Unit) -> Turn:
        ids = unit.open_ids
        try:
            if self._lease.shared:
                done = self._done_by_anyone().intersection(ids)
                unit.finished |= done
                self._waiting_for_others -= done
                ids = unit.open_ids
                self._order.take(done)
                if not ids:
                    return Turn.NEVER
            claimed = self._lease.claim(ids)
        except OrchError as error:  # the store may be unreachable for a moment: ask again later
            self.log.event("claim failed", error=str(error))
            return Turn.LATER
        if claimed:
            self._order.take(ids)
            self._waiting_for_others.difference_update(ids)
            return Turn.NOW
        if len(ids) > 1:
            return Turn.ONE_BY_ONE
        self._waiting_for_others.update(ids)
        return Turn.LATER

    def _done_by_anyone(self) -> set[str]:
        """Return the finished trials, read at most once a second: shared work needs them for every unit."""
        if time.monotonic() - self._read_done_at > READ_DONE_SECONDS:
            self._done, self._read_done_at = self._store.done(), time.monotonic()
        return self._done

    def started(self, unit: Unit) -> None:
        for trial in unit.open_trials:
            self._running.add(trial.id)
            self._unheard_of.add(trial.id)
            self._progress.running(self._todo[trial.id].sweeps, 1)
        self.log.event("unit started", trials=unit.open_ids)

    def _end_running(self, trial_ids: list[str]) -> None:
        """Count trials as no longer running, and release them."""
        for trial_id in trial_ids:
            if trial_id in self._running:
                self._running.discard(trial_id)
                self._progress.running(self._todo[trial_id].sweeps, -1)
        self._lease.release(trial_ids)

    def finished(self, unit: Unit, summary: dict[str, Any]) -> None:
        self._num_finished += 1
        self._unheard_of.discard(summary["trial_id"])
        self._order.result_arrived()
        planned = self._todo[summary["trial_id"]]
        self._end_running([summary["trial_id"]])
        self._progress.finished(planned.sweeps, planned.trial.label, summary, planned.seconds)
        self.log.event("trial finished", **summary)

    def refused(self, unit: Unit) -> None:
        self._end_running(unit.open_ids)

    def failed(self, unit: Unit, failure: Failure, again: bool) -> None:
        ids = unit.open_ids
        self._end_running(ids)
        self.log.event(
            "unit failed", trials=ids, outcome=str(failure.outcome), signature=failure.signature, again=again
        )
        if not again:
            for trial_id in ids:
                self._failed[trial_id] = str(failure.outcome)
                self._progress.failed(self._todo[trial_id].sweeps, self._todo[trial_id].seconds)
            self._say(f"{failure.outcome.replace('_', ' ')}: {unit.label} ({ids[0]}): {failure.message}")

    def tick(self, running: Sequence[Unit], num_waiting: int) -> None:
        trials = [each for unit in running for each in unit.running if each.trial_id in self._running]
        labels = {each.trial_id: self._todo[each.trial_id].trial.label_in_cell for each in trials}
        self._progress.reported(trials, labels, {each.trial_id: self._todo[each.trial_id].seconds for each in trials})
        super().tick(running, num_waiting)
        if not running and num_waiting and len(self._waiting_for_others) >= num_waiting and not self._stopped:
            self._stopped = "other drivers are running the rest"

    def _counts(self) -> dict[str, Any]:
        return {
            "finished": self._num_finished,
            "failed": len(self._failed),
            "running": len(self._running),
            "seconds_left": self._progress.seconds_left,
        }
