"""Running sweeps: plan them, take the lease, run the trials that have no result, and sum up."""

import hashlib
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orch.core.errors import OrchError
from orch.planning.plan import Plan, PlannedTrial, TrialState, make_plan
from orch.running.failures import Failure
from orch.running.lease import Lease
from orch.running.options import RunOptions
from orch.running.progress import Display, Progress, ProgressCount, duration
from orch.running.session import Session, check_holders, compacting, interruptible
from orch.running.units import Turn, Unit, make_packs
from orch.store import Store
from orch.sweeps.catalogue import Catalogue
from orch.sweeps.trial import Trial
from orch.usercode import UserCode, UserSweep, make_catalogue, read_sweeps
from orch.usercode.stored_code import get_code, put_code

LONG_SECONDS = 24 * 3600
"""A run that takes longer than this is confirmed by the user first."""
READ_DONE_SECONDS = 1.0


@dataclass(frozen=True)
class Request:
    """The sweeps, scale and conditions that a user asked for."""

    sweeps: tuple[str, ...]
    scale: str
    where: tuple[str, ...] = ()
    code: tuple[UserCode, ...] = ()
    """The user's files as they were when the request was made."""

    @classmethod
    def read(cls, names: Iterable[str], scale: str, where: Iterable[str]) -> "Request":
        """Make a request from names as the user gives them: files among them are read now, and not again."""
        sweeps, catalogue = read_sweeps(names)
        code = tuple(sweep.code for sweep in catalogue.sweeps.values() if isinstance(sweep, UserSweep))
        return cls(tuple(sweeps), scale, tuple(where), code)

    @property
    def catalogue(self) -> Catalogue:
        """The models, tasks and sweeps that it may name: the built-in ones and those of its code."""
        return make_catalogue(self.code)

    def plan(self, store: Store | None) -> Plan:
        return make_plan(self.sweeps, self.scale, self.where, store, catalogue=self.catalogue)

    @property
    def description(self) -> str:
        narrowed = f" where {' and '.join(self.where)}" if self.where else ""
        return f"{', '.join(self.sweeps)} at {self.scale} scale{narrowed}"


@dataclass
class RunSummary:
    """The outcome of a run of sweeps."""

    finished: int
    failed: dict[str, int]
    """How many trials failed, by outcome."""
    left: int
    waiting: int
    """Trials that wait for the results of others."""
    seconds: float
    stopped: str
    """Why the run stopped before everything was done; empty if it did not."""
    trial_ids: frozenset[str] = frozenset()
    """Every trial that was asked for, whether it was finished before or now."""


def run_sweeps(
    requests: Sequence[Request], store: Store, options: RunOptions, say: Callable[[str], None]
) -> RunSummary:
    """Run the requested trials that have no result in the store. It can be stopped at any moment and repeated."""
    from orch.running.machines import connect, disconnect

    plans = [request.plan(store) for request in requests]
    for request, plan in zip(requests, plans, strict=True):
        if not plan.trials:
            raise OrchError(f"no trial matches {request.description}: change --where; orch plan shows all trials")
    todo = _to_do(plans)
    if not todo:
        waiting = sum(plan.num_waiting for plan in plans)
        ids = _asked_for(plans)
        return RunSummary(finished=0, failed={}, left=0, waiting=waiting, seconds=0.0, stopped="", trial_ids=ids)
    if not options.join:
        check_holders(store, "wait for it, or share the work with --join")
    started = time.monotonic()
    machines = connect(options.num_cpus, options.gpus_per_trial, options.device)
    try:
        estimate = sum(planned.seconds for planned in todo.values()) / machines.slots
        say(f"running on {machines.description}; store {store.location}")
        say(f"{len(todo):,} trials to do, about {duration(estimate)}")
        if estimate > LONG_SECONDS and not options.confirm(f"This may take {duration(estimate)}. Start?"):
            raise OrchError("nothing was started: select fewer trials with --where, or add --yes")
        store.verify()
        names = "; ".join(request.description for request in requests)
        with Lease(store, names) as lease:
            for request, plan in zip(requests, plans, strict=True):
                record(store, request, plan)
            session = _Session(requests, plans, todo, store, machines, lease, options)
            try:
                summary = session.run()
            except OrchError as error:
                if options.on_finish:
                    _notify(options.on_finish, session.summary(stopped=str(error)))
                raise
            finally:
                session.log.flush(now=True)
    finally:
        disconnect()
    summary.seconds = time.monotonic() - started
    if options.on_finish:
        _notify(options.on_finish, summary)
    return summary


def _to_do(plans: Sequence[Plan]) -> dict[str, PlannedTrial]:
    """Return the trials to run, each once: first the shortest of every model and task, then the longest first."""
    missing = {planned.id: planned for plan in plans for planned in plan.trials if planned.left}
    by_length = sorted(missing.values(), key=lambda planned: -planned.seconds)
    canaries = {}
    for planned in by_length:  # the last one, which is the shortest, stays
        canaries[planned.trial.model.name, planned.trial.task.name] = planned
    first = sorted(
        {planned.trial.id: planned for planned in canaries.values()}.values(), key=lambda each: -each.seconds
    )
    return {planned.trial.id: planned for planned in [*first, *by_length]}


def _asked_for(plans: Sequence[Plan]) -> frozenset[str]:
    return frozenset(planned.id for plan in plans for planned in plan.trials)


def record(store: Store, request: Request, plan: Plan) -> None:
    """Record a request in the store, for `orch resume`, with its trials, so that `orch status` need not plan again."""
    digest = hashlib.sha256(request.description.encode()).hexdigest()[:8]
    name = f"{'-'.join((*request.sweeps, request.scale))[:60].replace('/', '_')}-{digest}"
    values = {
        "sweeps": list(request.sweeps),
        "scale": request.scale,
        "where": list(request.where),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": {planned.id: round(planned.seconds, 3) for planned in plan.trials if planned.id},
        "waiting": plan.num_waiting,
        "code": put_code(store, request.code),
    }
    store.put_json(f"sweeps/{name}.json", values)


def recorded_requests(store: Store) -> list[Request]:
    """Return every request that was ever made on this store."""
    found = []
    for values in store.list_json("sweeps").values():
        sweeps = tuple(values["sweeps"])
        code = get_code(store, values.get("code", ()), ", ".join(sweeps))
        found.append(Request(sweeps, values["scale"], tuple(values["where"]), code))
    return found


def find_trial(store: Store, trial_id: str) -> Trial:
    """Return the trial of this id, or whose id begins like this, among all that this store was ever asked for."""
    known: dict[str, Trial] = {}
    for request in recorded_requests(store):
        known |= {planned.trial.id: planned.trial for planned in request.plan(store).trials}
    matching = [key for key in known if key.startswith(trial_id)]
    if len(matching) != 1:
        problem = f"{len(matching)} trials begin with it" if matching else "no sweep on this store asked for it"
        raise OrchError(f"trial {trial_id!r}: {problem}: copy an id from orch failures, and check --store")
    return known[matching[0]]


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
    ):
        super().__init__(store, machines, lease, options)
        self._requests, self._plans, self._todo = requests, plans, todo
        self._display: Display | None = None
        self._num_finished = 0
        self._failed: dict[str, str] = {}
        self._waiting_for_others: set[str] = set()
        self._running: set[str] = set()
        self._done: set[str] = set()
        self._read_done_at = -READ_DONE_SECONDS

    def run(self) -> RunSummary:
        from orch.running import driver

        attempted: set[str] = set()
        # Workers of a driver that was killed may have written results after the plan was made.
        done = self._store.done()
        todo = {key: planned for key, planned in self._todo.items() if key not in done}
        with interruptible(self.interrupt), compacting(self._store, self.log):
            while not self._stopped:
                attempted |= set(todo)
                self._start_display(todo)
                self.log.event("sweep started", trials=len(todo), machines=self._machines.description)
                device, options = self._machines.device, self._options
                units = make_packs(todo.values(), device, options.pack, options.cheapest_first)
                if self._lease.shared:
                    units.reverse()  # the other driver began at the front
                if units:
                    with self._display or nullcontext():
                        driver.run(units, self._machines, options, self, self._store, self._lease.driver_id)
                # Trials that waited for results may be able to run now.
                again = [request.plan(self._store) for request in self._requests]
                for request, plan in zip(self._requests, again, strict=True):
                    record(self._store, request, plan)
                self._plans = again
                todo = {key: planned for key, planned in _to_do(again).items() if key not in attempted}
                if not todo:
                    break
        return self.summary(self._stopped)

    def summary(self, stopped: str) -> RunSummary:
        failed = dict(Counter(self._failed.values()))
        left = max(0, len(_to_do(self._plans)) - len(self._failed))
        waiting = sum(plan.num_waiting for plan in self._plans)
        self.log.event("sweep ended", finished=self._num_finished, failed=failed, left=left, stopped=stopped)
        return RunSummary(self._num_finished, failed, left, waiting, 0.0, stopped, _asked_for(self._plans))

    def _start_display(self, todo: dict[str, PlannedTrial]) -> None:
        tallies: dict[str, ProgressCount] = {}
        planned_trials = [planned for plan in self._plans for planned in plan.trials]
        for planned in planned_trials:
            for name in planned.sweeps:
                tallies.setdefault(name, ProgressCount()).expect(planned.state == TrialState.DONE)
        overall = ProgressCount()
        # Trials that wait have no id yet. Each of the others counts once.
        for planned in {planned.id or place: planned for place, planned in enumerate(planned_trials)}.values():
            overall.expect(planned.state == TrialState.DONE)
        seconds = sum(planned.seconds for planned in todo.values())
        self._todo = todo
        self._progress = Progress(tallies, seconds, overall)
        self._display = Display(self._progress, quiet=self._options.quiet)

    # The methods of the driver's listener.

    def turn(self, unit: Unit) -> Turn:
        ids = [trial.id for trial in unit.open_trials]
        try:
            if self._lease.shared:
                done = self._done_by_anyone().intersection(ids)
                unit.finished |= done
                self._waiting_for_others -= done
                ids = [trial.id for trial in unit.open_trials]
                if not ids:
                    return Turn.NEVER
            claimed = self._lease.claim(ids)
        except OrchError as error:  # the store may be unreachable for a moment: ask again later
            self.log.event("claim failed", error=str(error))
            return Turn.LATER
        if claimed:
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
            self._progress.running(self._todo[trial.id].sweeps, 1)
        self.log.event("unit started", trials=[trial.id for trial in unit.open_trials])

    def _no_longer_running(self, trial_ids: list[str]) -> None:
        for trial_id in trial_ids:
            if trial_id in self._running:
                self._running.discard(trial_id)
                self._progress.running(self._todo[trial_id].sweeps, -1)
        self._lease.release(trial_ids)

    def finished(self, unit: Unit, summary: dict[str, Any]) -> None:
        self._num_finished += 1
        planned = self._todo[summary["trial_id"]]
        self._no_longer_running([summary["trial_id"]])
        self._progress.finished(planned.sweeps, planned.trial.label, summary, planned.seconds)
        self.log.event("trial finished", **summary)

    def failed(self, unit: Unit, failure: Failure, again: bool) -> None:
        ids = [trial.id for trial in unit.open_trials]
        self._no_longer_running(ids)
        self.log.event(
            "unit failed", trials=ids, outcome=str(failure.outcome), signature=failure.signature, again=again
        )
        if not again:
            for trial_id in ids:
                self._failed[trial_id] = str(failure.outcome)
                self._progress.failed(self._todo[trial_id].sweeps)
            self._say(f"{failure.outcome.replace('_', ' ')}: {unit.label} ({ids[0]}): {failure.message}")

    def tick(self, running: Sequence[Unit], num_waiting: int) -> None:
        self.check_deadline()
        if not running and num_waiting and len(self._waiting_for_others) >= num_waiting and not self._stopped:
            self._stopped = "other drivers are running the rest"
        self._lease.counts = {
            "finished": self._num_finished,
            "failed": len(self._failed),
            "running": len(self._running),
        }
        self.log.flush()
        if self._display is not None:
            self._display.show()

    def _say(self, text: str) -> None:
        if self._display is not None:
            self._display.say(text)
