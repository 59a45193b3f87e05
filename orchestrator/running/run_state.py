"""The state of one run in the driver: the units that wait, run or failed, and the rule for retries."""

import functools
import math
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import ray
from ray.tune.experiment import Trial as TuneTrial

from orch.core.errors import OrchError
from orch.running import provenance
from orch.running.failures import SAME_IN_A_ROW, Failure, worth_another_try
from orch.running.lost_units import LostUnits
from orch.running.machines import Machines
from orch.running.options import RunOptions
from orch.running.quarantine import SICK_AFTER, Place, Quarantine
from orch.running.ray_compat import failure_of, raised_error
from orch.running.running_trial import RunningTrial
from orch.running.store_address import address_of
from orch.running.units import Listener, Turn, Unit
from orch.running.worker_messages import UnitRequest
from orch.store import Outcome, Store
from orch.store.attempts import make_attempt_id
from orch.usercode import codes_defining

LIFT_SECONDS = 60.0
"""After so long without a worker elsewhere, places in quarantine are used again: they are all there is."""


class BrokenSweep(OrchError):
    """Raised when attempt after attempt fails with the same error, and not in one place only."""


class RunState:
    """The units of one run, from the queue to their end. The Tune callbacks in `driver` report to it."""

    def __init__(
        self,
        queue: deque[Unit],
        machines: Machines,
        options: RunOptions,
        listener: Listener,
        store: Store,
        driver_id: str,
        driver_number: int = 0,
    ):
        """`driver_number` is the driver's place in the order of drivers: see `Lease.number`."""
        self.queue, self.machines, self.options, self.listener = queue, machines, options, listener
        self.store, self.driver_id, self._driver_number = store, driver_id, driver_number
        self.store_address = address_of(store.uri, driver_id)
        self.running_units: dict[str, tuple[TuneTrial, Unit]] = {}
        """The units that Tune has been given, by the id of their Tune trial."""
        self.error: OrchError | None = None
        """The error that stops the run; raised at its end."""
        self.num_started = 0
        self._hung: set[str] = set()
        self._recent_failures: list[Failure] = []
        self._quarantine = Quarantine()
        self._holders: dict[str, Place] = {}
        """The workers that hold a place in quarantine, by the id of their Tune trial."""
        self._trained_at = time.monotonic()
        self._lost = LostUnits(store, driver_id, machines.device)
        self._git_commit, self._git_dirty = provenance.git_state()

    @property
    def stopping(self) -> bool:
        return self.error is not None or self.listener.should_stop()

    @property
    def exhausted(self) -> bool:
        """Whether no unit is left to start, now or after those that run have ended."""
        self.listener.arrange(self.queue)
        return not self.queue

    @property
    def more_to_come(self) -> bool:
        """Whether a worker that is free may be given another unit. Asked after every event, so it must be fast."""
        return bool(self.queue)

    def next_unit(self) -> Unit | None:
        """Take the next unit that this driver may start from the queue; None if there is none for now."""
        self.listener.arrange(self.queue)
        for _ in range(len(self.queue)):
            unit = self._fair_share(self.queue.popleft())
            turn = self.listener.turn(unit)
            if turn is Turn.NOW:
                return unit
            if turn is Turn.LATER:
                self.queue.append(unit)
            elif turn is Turn.ONE_BY_ONE:
                self.queue.extend(unit.one_by_one())
        return None

    def _fair_share(self, unit: Unit) -> Unit:
        """Return the unit, or towards the end of the queue a part of it, so that no worker is idle."""
        slots = self.machines.slots
        if len(unit.open_trials) == 1 or len(self.queue) >= slots:
            return unit
        waiting = len(unit.open_trials) + sum(len(other.open_trials) for other in self.queue)
        unit, rest = unit.split(math.ceil(waiting / slots))
        if rest is not None:
            self.queue.appendleft(rest)
        return unit

    def request(self, unit: Unit) -> UnitRequest:
        """Begin a new attempt at a unit, and return the message to its worker."""
        attempt = functools.partial(make_attempt_id, self._driver_number, self.num_started)
        unit.attempts = {trial.id: attempt() for trial in unit.open_trials}
        unit.last_report_at, unit.running, unit.place = time.monotonic(), [], None
        return UnitRequest(
            trials=[trial.to_dict() for trial in unit.open_trials],
            attempts=unit.attempts,
            store=self.store_address,
            driver_id=self.driver_id,
            on_cluster=self.machines.address is not None,
            device=self.machines.device,
            threads=1,
            checkpoint_seconds=self.options.checkpoint_seconds,
            weights_limit=self.options.weights_limit,
            training=self.options.training,
            code=[code.to_dict() for code in codes_defining(unit.open_trials)],
            git_commit=self._git_commit,
            git_dirty=self._git_dirty,
        )

    def reported(self, tune_id: str, report: dict[str, Any]) -> None:
        """Handle a worker's report of its progress."""
        unit, place = self.running_units[tune_id][1], Place.from_dict(report["place"])
        if report.get("refused"):
            del self.running_units[tune_id]
            self._holders[tune_id] = place
            self.queue.appendleft(unit)
            self.listener.refused(unit)
            return
        unit.place = place
        self._quarantine.trained(place, bool(report["finished"]))
        unit.last_report_at, unit.step = time.monotonic(), report["step"]
        unit.running = [RunningTrial.from_dict(values) for values in report.get("running", ())]
        for text in report.get("changes", ()):
            self.listener.changed_state(text)
        self._finished(unit, report["finished"])

    def _finished(self, unit: Unit, summaries: Iterable[dict[str, Any]]) -> None:
        for summary in summaries:
            unit.finished.add(summary["trial_id"])
            self.listener.finished(unit, summary)

    def ended(self, tune_id: str, error: bool) -> None:
        """Handle the end of an attempt. If its worker was lost, the store is asked first what became of it."""
        if self._holders.pop(tune_id, None) is not None:
            return
        tune_trial, unit = self.running_units.pop(tune_id)
        if not error:
            self.completed(unit)
            return
        failure = self._failure(tune_id, tune_trial)
        failure = failure if failure.place else replace(failure, place=unit.place)
        self._finished(unit, failure.finished)
        if failure.written or failure.store_lost:
            self._failed(unit, failure)
        else:
            self._lost.add(unit, failure)

    def settle(self, wait: bool = False) -> None:
        """Handle the failures of lost units that have been examined; with `wait`, of all lost units."""
        if self._lost:
            for lost in self._lost.collect(wait):
                self._finished(lost.unit, lost.finished)
                self.error = self.error or lost.error
                self._failed(lost.unit, lost.failure)

    @property
    def idle(self) -> bool:
        """Whether no unit is running or being examined."""
        return not self.running_units and not self._lost

    def completed(self, unit: Unit) -> None:
        """Handle the end of an attempt after which nothing of the unit is left, or that was stopped on purpose."""
        self._recent_failures.clear()

    def _failed(self, unit: Unit, failure: Failure) -> None:
        """Handle a failed attempt, and queue the trials that are worth another try."""
        if not unit.open_trials:
            self.completed(unit)
            return
        unit.failures.append(failure)
        if failure.store_lost:
            self.error = OrchError(failure.message)
        sick = self._quarantine.failed(failure)
        retries = self.retries(unit)
        again = bool(retries) and not self.stopping
        self._check_for_broken_sweep(failure)
        self.listener.failed(unit, failure, again)
        if again:
            self.queue.extend(retries)
        if sick is not None:
            self._tell(f"{sick.label} is left alone: {SICK_AFTER} attempts there failed alike ({failure.signature})")
        if not retries and (freed := self._quarantine.excuse(unit.failures)):
            self._tell(f"{', '.join(place.label for place in freed)} may be used again: its trials fail elsewhere too")

    def _tell(self, news: str) -> None:
        self.listener.quarantined(self._quarantine.sick, news)

    @property
    def num_places(self) -> int:
        """The number of GPUs, or of machines without, that the run may use."""
        machines = self.machines
        expected = machines.gpus if machines.device == "cuda" else machines.nodes
        return max(1, expected, len(self._quarantine.seen))

    @property
    def num_taken_slots(self) -> int:
        return len(self.running_units) + len(self._holders)

    def lets_go(self, tune_id: str) -> bool:
        """Return whether a worker that holds a place in quarantine may end: the place is free, or nothing is left."""
        place = self._holders.get(tune_id)
        if place is None:
            return False
        is_sick = any(sick.has(place) for sick in self._quarantine.sick)
        return not is_sick or (self.idle and (self.exhausted or self.stopping))

    def _check_for_broken_sweep(self, failure: Failure) -> None:
        if failure.outcome is not Outcome.FAILED:
            return  # a lost machine ends many attempts in the same way, which says nothing about the sweep
        self._recent_failures.append(failure)
        last = self._recent_failures[-SAME_IN_A_ROW:]
        alike = len(last) == SAME_IN_A_ROW and len({each.signature for each in last}) == 1
        places = {each.place for each in last}
        one_of_several = len(self._quarantine.seen) > 1 and len(places) == 1 and None not in places
        if self.error is None and alike and not one_of_several:
            self.error = BrokenSweep(
                f"{SAME_IN_A_ROW} attempts in a row failed with the same error ({failure.signature}): nothing more was"
                " started. Fix the cause (orch failures shows the traceback), then run orch resume"
            )

    def retries(self, unit: Unit) -> list[Unit]:
        """Return the units to queue again after a failed attempt, the last of `unit.failures`.

        A pack that failed twice, ran out of memory, hung or met an error of a user's code is tried again trial by
        trial, so that a failure of one trial no longer stops the others.
        """
        last = unit.failures[-1]
        if len(unit.open_trials) == 1:
            return [unit] if worth_another_try(unit.failures, self.num_places) else []
        not_as_a_pack = last.outcome in (Outcome.OUT_OF_MEMORY, Outcome.HUNG) or last.deterministic
        num_blamed = sum(not failure.blameless for failure in unit.failures)
        return unit.one_by_one() if not_as_a_pack or num_blamed > 1 else [unit]

    def _failure(self, tune_id: str, tune_trial: TuneTrial) -> Failure:
        if tune_id in self._hung:
            self._hung.discard(tune_id)
            seconds = self.options.hang_seconds
            return Failure(Outcome.HUNG, "hung", f"no progress for {seconds:g} s: the worker was ended")
        return failure_of(raised_error(tune_trial), on_cluster=bool(self.machines.address))

    def watch(self) -> None:
        """Inform the listener, and end workers that make no progress. It is called several times a second."""
        self.settle()
        for tune_id, (tune_trial, unit) in list(self.running_units.items()):
            actor = tune_trial.temporary_state.ray_actor
            if actor is None or tune_trial.status != TuneTrial.RUNNING:
                unit.last_report_at = time.monotonic()
            elif time.monotonic() - unit.last_report_at > self.options.hang_seconds and tune_id not in self._hung:
                self._hung.add(tune_id)
                ray.kill(actor)
            if tune_trial.status == TuneTrial.RUNNING:
                self._trained_at = time.monotonic()
        if self._holders and time.monotonic() - self._trained_at > LIFT_SECONDS:
            self._quarantine.lift()
            self._tell("machines that were left alone are used again: there are no others")
        self.listener.tick([unit for _, unit in self.running_units.values()], len(self.queue))
