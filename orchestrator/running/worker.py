"""The work of a worker process on a unit: train its trials, write checkpoints and rows. Imports no Ray.

The order of writes makes a crash harmless: the weights first, then the row of the finished trial, then the checkpoint
is deleted, then the attempt ends. Checkpoints are written by a thread of their own. A trial is taken from that thread
before its checkpoint is deleted, and the thread is at rest before an attempt ends, so that no checkpoint comes back.
"""

import dataclasses
import importlib
import math
import os
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from orch.core.errors import OrchError
from orch.running import provenance
from orch.running.checkpoint_writer import CheckpointWriter
from orch.running.driver_log import Log, worker_log
from orch.running.failures import ChangedState, Failure, TrialError, describe
from orch.running.gpu_use import GpuUse
from orch.running.options import DEFAULT_TRAINING
from orch.running.running_trial import RunningTrial, published_curve
from orch.running.worker_messages import SUMMARY, UnitRequest, UnitState
from orch.store import Outcome, Store, curve_rows, trial_row
from orch.store.attempts import Attempt
from orch.sweeps.result import CurvePoint, StopReason
from orch.sweeps.trial import Trial
from orch.usercode import UserCode, make_catalogue
from orch.usercode.loading import code_of

if TYPE_CHECKING:
    from orch.training.snapshot import Snapshot
    from orch.usercode.global_state import StateChanges

CHECKPOINT_COST = 0.05
"""The largest share of the time that checkpoints may take from training. Large models are checkpointed less often."""

MOST_CURVES = 16
"""Trials of a pack whose curves are reported while they train; the others report only how far they are."""


def read_driver(request: UnitRequest) -> dict[str, Any]:
    """Return the driver's file, or raise `TrialError` if this machine does not see the store that the driver writes to.

    A folder of the same name on another disk would accept every result, and the results would be lost.
    """
    store = Store.open(request["store"])
    try:
        found: dict[str, Any] | None = store.get_json(f"drivers/{request['driver_id']}.json")
        if found is not None:
            return found
        problem = f"the machine {os.uname().nodename} does not see the driver's store at {store.location}"
    except OrchError as error:
        problem = f"the machine {os.uname().nodename} cannot use the store ({error})"
    remedy = "use a folder that all machines share, or a bucket such as s3://bucket/runs"
    raise TrialError(Failure(Outcome.FAILED, "store out of reach", f"{problem}: {remedy}", store_lost=True))


def open_training(trials: list[Trial], snapshots: "list[Snapshot | None]", device: str) -> Any:
    """Resume a training if every trial has a snapshot, all of the same step; otherwise start a new one."""
    from orch.training.train import Training

    found = [snapshot for snapshot in snapshots if snapshot is not None]
    return Training.resume(found, device) if len(found) == len(trials) else Training(trials, device)


class UnitRun:
    """An attempt at a unit. `run_for` trains for a while; `stop` leaves it so that another worker can continue.

    A unit with user code needs a process of its own, which `forked_unit` provides: here its changes to global state are
    only noticed, and not undone.
    """

    def __init__(self, request: UnitRequest, num_in_turn: int = 1, log: Log | None = None):
        """Start the attempt, in a process that trains `num_in_turn` units in turn."""
        self._request, self._num_in_turn = request, num_in_turn
        self._store = Store.open(request["store"])
        self._trials: list[Trial] = []
        driver_id, device = request["driver_id"], request["device"]
        self._attempts = {
            trial_id: Attempt(attempt_id=attempt_id, trial_id=trial_id, driver_id=driver_id, device=device)
            for trial_id, attempt_id in request["attempts"].items()
        }
        self._open_attempts = dict(self._attempts)
        self._started = datetime.now(UTC)
        self._clock = time.monotonic()
        self._saved_at = time.monotonic()
        self._checkpoint_cost = 0.0
        self._writer = CheckpointWriter(self._store)
        self._num_written = 0
        self._unreported: list[dict[str, Any]] = []
        """Summaries of finished trials that the driver has not been told of."""
        self._warned: set[str] = set()
        self.changes: list[str] = []
        self._state_changes: StateChanges | None = None
        self._training: Any = None
        self._first_steps: dict[str, int] = {}
        self._waiting_groups: list[tuple[list[Trial], list[Snapshot | None]]] = []
        provenance.reset_peak_memory()
        self._gpu_use = GpuUse(device)
        self._store.write("attempts", [attempt.start_row() for attempt in self._attempts.values()])
        self._log: Log = log or worker_log(self._store)
        try:
            if request["code"]:
                from orch.usercode.global_state import changes_in_this_process

                self._state_changes = changes_in_this_process()
            catalogue = make_catalogue(tuple(UserCode.from_dict(values) for values in request["code"]))
            self._store = self._store.with_settings_of(catalogue)
            self._trials = [Trial.from_dict(values, catalogue) for values in request["trials"]]
            self._find_changes(while_loading=True)
            self._waiting_groups = self._groups_by_step()
            self._training = self._open_training()
            self._check_changes()
        except Exception as error:
            raise self._failed(error) from error

    def _groups_by_step(self) -> "list[tuple[list[Trial], list[Snapshot | None]]]":
        """Read the checkpoints, and group the trials by step and kernel: only such trials can share a stack.

        There is more than one group if a worker was lost while it wrote the checkpoints of a pack, or if the trials
        began with different kernels. The groups train one after the other.
        """
        groups: dict[tuple[int, str | None], tuple[list[Trial], list[Snapshot | None]]] = {}
        resumed = []
        for trial in self._trials:
            snapshot = self._read_snapshot(trial)
            if snapshot is not None:
                resumed.append(trial.id)
                self._first_steps[trial.id] = snapshot.step
            stack = (0, None) if snapshot is None else (snapshot.step, snapshot.kernel)
            trials, snapshots = groups.setdefault(stack, ([], []))
            trials.append(trial)
            snapshots.append(snapshot)
        self._log.event("unit started", trials=[trial.id for trial in self._trials], resumed=resumed)
        return list(groups.values())

    def _read_snapshot(self, trial: Trial) -> "Snapshot | None":
        """Read the checkpoint of a trial; None if there is none, or if it is damaged or was written by other code."""
        data = self._store.get_checkpoint(trial.id)
        if data is None:
            return None
        from orch.training.checkpoints import parse_snapshot

        try:
            snapshot = parse_snapshot(data, f"the checkpoint of {trial.id}", trial.definitions)
        except OrchError:
            return None
        return snapshot if snapshot.trial == trial else None

    def _open_training(self) -> Any:
        if self._request["training"] == DEFAULT_TRAINING:
            import torch

            torch.set_num_threads(self._request["threads"])
        module, _, function = self._request["training"].partition(":")
        self._num_written = 0
        trials, snapshots = self._waiting_groups.pop(0)
        return getattr(importlib.import_module(module), function)(trials, snapshots, self._request["device"])

    def run_for(self, seconds: float) -> dict[str, Any]:
        """Train for about this long or until all trials are done, and return the report for the driver."""
        until = time.monotonic() + seconds
        while not self.done and time.monotonic() < until:
            self.advance(until)
        self._log.flush()
        running = [each.to_dict() for each in self.running_trials]
        return {
            "finished": self.take_finished(),
            "done": self.done,
            "step": self.step,
            "running": running,
            "changes": self.changes,
        }

    def take_finished(self) -> list[dict[str, Any]]:
        """Return the summaries of trials that have finished since the last call."""
        finished, self._unreported = self._unreported, []
        return finished

    def advance(self, until: float = math.inf) -> None:
        """Train to the next validation or to a time on the clock.

        A worker that must stop has only seconds, and the next validation of a large pack may be minutes away.
        """
        try:
            if self._training.finished:
                self._training = self._open_training()
            self._training.advance(lambda step: time.monotonic() >= until)
            self._check_changes()
            self._log_warnings()
            self._write_results()
            self._checkpoint_if_due()
        except Exception as error:
            raise self._failed(error) from error

    def _find_changes(self, while_loading: bool = False) -> bool:
        """Log what user code has changed in the global state since the last call. Return whether it has."""
        if self._state_changes is None or not self._trials:
            return False
        parts = (("model", self._trials[0].model), ("task", self._trials[0].task))
        subject = " or ".join(f"{kind} {part.name}" for kind, part in parts if code_of(type(part)) is not None)
        found = [f"{subject} {change}" for change in self._state_changes.find(while_loading)]
        for text in found:
            if text not in self.changes:
                self.changes.append(text)
                self._log.event("warning", text=text)
        return bool(found)

    def _check_changes(self) -> None:
        """Raise an error if the trials of a pack may have changed each other."""
        if self._find_changes() and len(self._trials) > 1:
            raise ChangedState(f"{self.changes[-1]}. The trials of this pack are trained one by one instead")

    def _log_warnings(self) -> None:
        """Log each warning of the training once. A training of the user's own may have none to give."""
        for text in getattr(self._training, "warnings", ()):
            if text not in self._warned:
                self._warned.add(text)
                self._log.event("warning", text=text)

    @property
    def done(self) -> bool:
        return self._training.finished and not self._waiting_groups

    @property
    def state(self) -> UnitState:
        return UnitState(self.done, self.step, self.changes)

    @property
    def step(self) -> int:
        step: int = self._training.step
        return step

    @property
    def running_trials(self) -> list[RunningTrial]:
        """The progress of the trials in training."""
        found = []
        for place, member in enumerate(self._training.members):
            trial, last = member.trial, member.curve[-1] if member.curve else None
            found.append(
                RunningTrial(
                    trial_id=trial.id,
                    step=self.step,
                    steps=trial.steps,
                    first_step=self._first_steps.get(trial.id, 0),
                    train_loss=None if last is None else last.train_loss,
                    validation_accuracy=None if last is None else last.validation_accuracy,
                    curve=published_curve(member.curve) if place < MOST_CURVES else (),
                )
            )
        return found

    @property
    def curves(self) -> dict[str, Sequence[CurvePoint]]:
        """The validation curves of the trials that are in training or have just finished."""
        finished = {result.trial.id: result.curve for result in self._training.results}
        return finished | {member.trial.id: member.curve for member in self._training.members}

    def _write_results(self) -> None:
        """Write the results of trials that have finished since the last call, each table's rows as one part."""
        results = self._training.results[self._num_written :]
        if not results:
            return
        self._num_written += len(results)
        self._writer.drop(result.trial.id for result in results)
        for result in results:
            if result.parameters and _size(result.parameters) <= self._request["weights_limit"]:
                from orch.training.checkpoints import model_bytes

                self._store.put_weights(result.trial.id, model_bytes(result))
        rows = [trial_row(result, self._provenance(result.trial)) for result in results]
        curves = [row for result in results for row in curve_rows(result, self._attempts[result.trial.id].attempt_id)]
        self._store.write_trials(rows, curves)
        self._unreported += [{name: row[name] for name in SUMMARY} for row in rows]
        for result in results:
            self._store.delete_checkpoint(result.trial.id)
        outcomes = {True: Outcome.DIVERGED, False: Outcome.FINISHED}
        self._end(
            (result.trial.id, outcomes[result.stop_reason == StopReason.DIVERGED], result.steps) for result in results
        )

    def _provenance(self, trial: Trial) -> dict[str, Any]:
        request = self._request
        kernel = self._training.kernel if request["training"] == DEFAULT_TRAINING else None
        wall = time.monotonic() - self._clock
        return provenance.machine(request["device"], request["threads"]) | {
            "attempt_id": self._attempts[trial.id].attempt_id,
            "driver_id": request["driver_id"],
            "kernel": kernel,
            "mamba_kernel": kernel if trial.model.name == "mamba" else None,
            "git_commit": request["git_commit"],
            "git_dirty": request["git_dirty"],
            "peak_memory_mb": provenance.peak_memory_mb(),
            **self._gpu_use.columns(),
            "started_at": self._started,
            "finished_at": datetime.now(UTC),
            "wall_seconds": wall,
            "device_seconds": wall / len(self._trials) / self._num_in_turn,
        }

    def _checkpoint_if_due(self) -> None:
        if self._training.finished:
            return
        self._collect_checkpoint()
        waited = time.monotonic() - self._saved_at
        due = waited > max(self._request["checkpoint_seconds"], self._checkpoint_cost / CHECKPOINT_COST)
        if due and not self._writer.busy:
            self._start_checkpoint()

    def _start_checkpoint(self) -> None:
        self._saved_at = time.monotonic()
        if views := [self._training.view(position) for position in range(len(self._training.members))]:
            self._writer.start(views)

    def _collect_checkpoint(self) -> None:
        """Log the checkpoint that was written since the last call, or raise the error that ended it."""
        if written := self._writer.collect():
            self._checkpoint_cost = written.cost
            times = {"seconds": round(written.seconds, 3), "cost_seconds": round(written.cost, 3)}
            self._log.event("checkpoint written", step=written.step, **times)

    def _rest_writer(self) -> None:
        """Stop writing a checkpoint. If it has failed, that is only logged: another one or an error follows."""
        self._writer.cancel()
        try:
            self._collect_checkpoint()
        except Exception as error:
            self._log.event("checkpoint failed", error=str(error))

    def stop(self, outcome: Outcome = Outcome.INTERRUPTED) -> None:
        """Write checkpoints of the unfinished trials, and end their attempts with this outcome."""
        self._rest_writer()
        if self._open_attempts and self._training is not None:
            if not self._training.finished:
                self._start_checkpoint()
                self._writer.wait()
                self._collect_checkpoint()
            self._end((trial_id, outcome, self.step) for trial_id in list(self._open_attempts))
        self._log.flush(now=True)

    def _failed(self, error: BaseException) -> TrialError:
        """End every open attempt with this error, and return the exception that reports it to the driver."""
        failure = describe(error)
        self._find_changes()  # the log then has the likely cause of what was raised
        self._rest_writer()
        finished = tuple(self._unreported)
        try:
            self._end(((trial_id, failure.outcome, None) for trial_id in list(self._open_attempts)), failure)
        except OrchError as lost:
            # The store itself may have failed. Then only the driver learns of the error.
            return TrialError(dataclasses.replace(failure, store_lost=True, message=str(lost), finished=finished))
        return TrialError(dataclasses.replace(failure, written=True, finished=finished))

    def _end(self, ends: Iterable[tuple[str, Outcome, int | None]], failure: Failure | None = None) -> None:
        """End attempts, given the trial, the outcome and the step of each."""
        rows = []
        for trial_id, outcome, step in ends:
            del self._open_attempts[trial_id]
            self._log.event("attempt ended", trial_id=trial_id, outcome=str(outcome), step=step)
            rows.append(self._attempts[trial_id].end_row(outcome, step, None if failure is None else failure.error))
        self._store.write("attempts", rows)


def _size(parameters: dict[str, Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in parameters.values())
