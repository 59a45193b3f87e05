"""The state of one run in the driver: the units that wait, run or failed, and the rule for retries."""

import functools
import math
import time
from collections import deque
from typing import Any

import ray
from ray.tune.experiment import Trial as TuneTrial

from orch.core.errors import OrchError
from orch.running import provenance
from orch.running.failures import SAME_IN_A_ROW, Failure, worth_another_try
from orch.running.machines import Machines
from orch.running.options import RunOptions
from orch.running.ray_compat import failure_of, raised_error
from orch.running.running_trial import RunningTrial
from orch.running.store_address import address_of
from orch.running.units import Listener, Turn, Unit
from orch.running.worker import SUMMARY, UnitRequest
from orch.store import Outcome, Store
from orch.store.attempts import Attempt, make_attempt_id
from orch.usercode import codes_defining


class BrokenSweep(OrchError):
    """Raised when attempt after attempt fails with the same error."""


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
        self._recent_signatures: list[str] = []
        self._git_commit, self._git_dirty = provenance.git_state()

    @property
    def stopping(self) -> bool:
        return self.error is not None or self.listener.should_stop()

    @property
    def exhausted(self) -> bool:
        """Whether no unit is left to start, now or after those that run have ended."""
        self.listener.arrange(self.queue)
        return not self.queue

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
        unit.last_report_at, unit.running = time.monotonic(), []
        return UnitRequest(
            trials=[trial.to_dict() for trial in unit.open_trials],
            attempts=unit.attempts,
            store=self.store_address,
            driver_id=self.driver_id,
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
        unit = self.running_units[tune_id][1]
        unit.last_report_at, unit.step = time.monotonic(), report["step"]
        unit.running = [RunningTrial.from_dict(values) for values in report.get("running", ())]
        for summary in report["finished"]:
            unit.finished.add(summary["trial_id"])
            self.listener.finished(unit, summary)

    def ended(self, tune_id: str, error: bool) -> None:
        """Handle the end of an attempt: record a failure, and queue the trials that are worth another try."""
        tune_trial, unit = self.running_units.pop(tune_id)
        if not error:
            self._recent_signatures.clear()
            return
        failure = self._failure(tune_id, tune_trial)
        self._read_unreported_results(unit)
        if not unit.open_trials:
            self._recent_signatures.clear()
            return
        unit.failures.append(failure)
        if failure.store_lost:
            self.error = OrchError(failure.message)
        elif not failure.written:
            try:
                self._end_attempts(unit, failure)
            except OrchError as store_error:
                self.error = store_error
        retries = self.retries(unit)
        again = bool(retries) and not self.stopping
        self._check_for_broken_sweep(failure)
        self.listener.failed(unit, failure, again)
        if again:
            self.queue.extend(retries)

    def _check_for_broken_sweep(self, failure: Failure) -> None:
        if failure.outcome is not Outcome.FAILED:
            return  # a lost machine ends many attempts in the same way, which says nothing about the sweep
        self._recent_signatures.append(failure.signature)
        last = self._recent_signatures[-SAME_IN_A_ROW:]
        if self.error is None and len(last) == SAME_IN_A_ROW and len(set(last)) == 1:
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
            return [unit] if worth_another_try(unit.failures) else []
        not_as_a_pack = last.outcome in (Outcome.OUT_OF_MEMORY, Outcome.HUNG) or last.deterministic
        num_blamed = sum(not failure.blameless for failure in unit.failures)
        return unit.one_by_one() if not_as_a_pack or num_blamed > 1 else [unit]

    def _read_unreported_results(self, unit: Unit) -> None:
        """Find results that a worker wrote and could not report before it was lost."""
        try:
            rows = self.store.read("trials", SUMMARY).to_pylist()
        except OrchError:
            return  # the store is unreachable: the attempt counts as lost, and the first of two results counts
        attempts = set(unit.attempts.values())
        for row in rows:
            if row["attempt_id"] in attempts and row["trial_id"] not in unit.finished:
                unit.finished.add(row["trial_id"])
                self.listener.finished(unit, row)

    def _failure(self, tune_id: str, tune_trial: TuneTrial) -> Failure:
        if tune_id in self._hung:
            self._hung.discard(tune_id)
            seconds = self.options.hang_seconds
            return Failure(Outcome.HUNG, "hung", f"no progress for {seconds:g} s: the worker was ended")
        return failure_of(raised_error(tune_trial), on_cluster=bool(self.machines.address))

    def _end_attempts(self, unit: Unit, failure: Failure) -> None:
        """Write the end rows that a lost worker could not write."""
        for trial_id, attempt_id in unit.attempts.items():
            if trial_id not in unit.finished:
                attempt = Attempt(
                    attempt_id=attempt_id, trial_id=trial_id, driver_id=self.driver_id, device=self.machines.device
                )
                row = attempt.end_row(failure.outcome, unit.step, failure.error, by_driver=True)
                self.store.write("attempts", [row])

    def watch(self) -> None:
        """Inform the listener, and end workers that make no progress. It is called several times a second."""
        for tune_id, (tune_trial, unit) in list(self.running_units.items()):
            actor = tune_trial.temporary_state.ray_actor
            if actor is None or tune_trial.status != TuneTrial.RUNNING:
                unit.last_report_at = time.monotonic()
            elif time.monotonic() - unit.last_report_at > self.options.hang_seconds and tune_id not in self._hung:
                self._hung.add(tune_id)
                ray.kill(actor)
        self.listener.tick([unit for _, unit in self.running_units.values()], len(self.queue))
