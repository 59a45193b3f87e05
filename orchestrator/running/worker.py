"""What a worker process does with a unit of work: train it, checkpoint it, write its rows. Knows nothing of Ray.

A unit is a plain dictionary, because it travels: see `Unit`. The order of writes makes a crash harmless: weights, then
the row that says a trial is done, then the checkpoint goes, then the attempt ends.
"""

import dataclasses
import importlib
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypedDict

from orch.core.errors import OrchError
from orch.running import provenance
from orch.running.failures import Failure, TrialError, describe
from orch.running.log import worker_log
from orch.store import Outcome, Store, curve_rows, trial_row
from orch.sweeps.result import CurvePoint, StopReason
from orch.sweeps.trial import Trial
from orch.usercode import UserCode, make_catalogue

CHECKPOINT_COST = 0.05
"""Checkpoints may take at most this share of the time: large models are checkpointed less often."""


SUMMARY = ("trial_id", "attempt_id", "validation_accuracy", "ood_accuracy", "stop_reason", "steps_trained")
"""What of a finished trial's row the driver is told."""


class Unit(TypedDict):
    """One pack of trials for one worker."""

    trials: list[dict[str, Any]]
    attempts: dict[str, str]
    """The id of this attempt at each trial: the driver's, so that it can end what a lost worker could not."""
    store: str
    driver_id: str
    device: str
    threads: int
    checkpoint_seconds: float
    weights_limit: int
    training: str
    """`module:function` that opens a training: see `open_training`."""
    code: list[dict[str, Any]]
    """Files of the user's that define their models or tasks: see `UserCode`."""
    git_commit: str | None
    git_dirty: bool | None


DEFAULT_TRAINING = "orch.running.worker:open_training"


def check_shared(unit: Unit) -> None:
    """Before a first attempt is written: whether this machine sees the very store that the driver writes to. A folder
    of the same name on another disk would take everything and show it to nobody."""
    store = Store.open(unit["store"])
    try:
        if store.get_json(f"drivers/{unit['driver_id']}.json") is not None:
            return
        problem = f"the machine {os.uname().nodename} does not see the driver's store at {store.location}"
    except OrchError as error:
        problem = f"the machine {os.uname().nodename} cannot use the store ({error})"
    remedy = "use a folder that all machines share, or a bucket such as s3://bucket/runs"
    raise TrialError(Failure(Outcome.FAILED, "store out of reach", f"{problem}: {remedy}", store_lost=True))


def checkpoint_step(data: bytes, trial: Trial) -> int:
    """How far a checkpoint of a trial is; one that is damaged is as good as none."""
    from orch.training.checkpoints import parse_snapshot

    try:
        return parse_snapshot(data, "a checkpoint", trial.definitions).step
    except OrchError:
        return 0


def open_training(trials: list[Trial], checkpoints: list[bytes | None], device: str) -> Any:
    """A fresh or a resumed training; without a good checkpoint of every trial, a fresh one."""
    from orch.training.checkpoints import parse_snapshot
    from orch.training.train import Training

    snapshots = []
    for trial, data in zip(trials, checkpoints, strict=True):
        if data is not None:
            try:
                snapshot = parse_snapshot(data, f"the checkpoint of {trial.id}", trial.definitions)
            except OrchError:
                break  # damaged, or of other code: as good as none, and the trial starts again
            if snapshot.trial == trial:
                snapshots.append(snapshot)
    if len(snapshots) == len(trials) and len({snapshot.step for snapshot in snapshots}) == 1:
        return Training.resume(snapshots, device)
    return Training(trials, device)


class UnitRun:
    """A unit on its way. `run_for` trains for a while; `stop` leaves it so that another worker can go on."""

    def __init__(self, unit: Unit, num_in_turn: int = 1):
        """`num_in_turn` units share this process, a while each."""
        self._unit, self._num_in_turn = unit, num_in_turn
        self._store = Store.open(unit["store"])
        self._trials: list[Trial] = []
        self._attempts = unit["attempts"]
        self._open = dict.fromkeys(self._attempts)
        self._started = datetime.now(UTC)
        self._clock = time.monotonic()
        self._saved_at = time.monotonic()
        self._save_took = 0.0
        self._reported = 0
        self._training: Any = None
        self._later: list[tuple[list[Trial], list[bytes | None]]] = []
        provenance.reset_peak_memory()
        for trial_id in self._attempts:
            self._write_attempt(trial_id, "start")
        self._log = worker_log(self._store)
        try:
            catalogue = make_catalogue(tuple(UserCode.from_dict(values) for values in unit["code"]))
            self._store = self._store.with_settings_of(catalogue)
            self._trials = [Trial.from_dict(values, catalogue) for values in unit["trials"]]
            self._later = self._by_step()
            self._training = self._open_training()
        except Exception as error:
            raise self._failed(error) from error

    def _by_step(self) -> list[tuple[list[Trial], list[bytes | None]]]:
        """The unit's trials with their checkpoints. Only trials at the same step can share a stack, and a worker may
        have been lost while it wrote a pack's checkpoints: then those at one step go on together, then the others."""
        checkpoints = [self._store.get_checkpoint(trial.id) for trial in self._trials]
        resumed = [trial.id for trial, data in zip(self._trials, checkpoints, strict=True) if data is not None]
        self._log.event("unit started", trials=[trial.id for trial in self._trials], resumed=resumed)
        groups: dict[int, tuple[list[Trial], list[bytes | None]]] = {}
        for trial, data in zip(self._trials, checkpoints, strict=True):
            step = 0 if data is None or len(checkpoints) == 1 else checkpoint_step(data, trial)
            trials, found = groups.setdefault(step, ([], []))
            trials.append(trial)
            found.append(data)
        return list(groups.values())

    def _open_training(self) -> Any:
        if self._unit["training"] == DEFAULT_TRAINING:
            import torch

            torch.set_num_threads(self._unit["threads"])
        module, _, function = self._unit["training"].partition(":")
        self._reported = 0
        trials, checkpoints = self._later.pop(0)
        return getattr(importlib.import_module(module), function)(trials, checkpoints, self._unit["device"])

    def run_for(self, seconds: float) -> dict[str, Any]:
        """Train until about that much time has gone by or all is done; what has happened, for the driver."""
        until = time.monotonic() + seconds
        finished = []
        while not self.done and time.monotonic() < until:
            finished += self.advance()
        self._log.flush()
        return {"finished": finished, "done": self.done, "step": self.step}

    def advance(self) -> list[dict[str, Any]]:
        """Train to the next validation; what has finished by then."""
        try:
            if self._training.finished:
                self._training = self._open_training()
            self._training.advance()
            finished = self._write_results()
            self._checkpoint_if_due()
        except Exception as error:
            raise self._failed(error) from error
        return finished

    @property
    def done(self) -> bool:
        return self._training.finished and not self._later

    @property
    def step(self) -> int:
        return getattr(self._training, "step", 0)

    @property
    def curves(self) -> dict[str, Sequence[CurvePoint]]:
        """The validations of the trials that are in training or have just finished."""
        finished = {result.trial.id: result.curve for result in self._training.results}
        return finished | {member.trial.id: member.curve for member in self._training.members}

    def _write_results(self) -> list[dict[str, Any]]:
        """Rows for the trials that have finished since the last call."""
        reported = []
        while self._reported < len(self._training.results):
            result = self._training.results[self._reported]
            self._reported += 1
            trial = result.trial
            if result.parameters and _size(result.parameters) <= self._unit["weights_limit"]:
                from orch.training.checkpoints import model_bytes

                self._store.put_weights(trial.id, model_bytes(result))
            row = trial_row(result, self._provenance(trial))
            curves = curve_rows(result, self._attempts[trial.id])
            self._store.write_trial(row, curves)
            self._store.delete_checkpoint(trial.id)
            diverged = result.stop_reason == StopReason.DIVERGED
            self._end(trial.id, Outcome.DIVERGED if diverged else Outcome.FINISHED, step=result.steps)
            reported.append({name: row[name] for name in SUMMARY})
        return reported

    def _provenance(self, trial: Trial) -> dict[str, Any]:
        unit = self._unit
        kernel = trial.model.kernel_name(unit["device"]) if unit["training"] == DEFAULT_TRAINING else None
        wall = time.monotonic() - self._clock
        return provenance.machine(unit["device"], unit["threads"]) | {
            "attempt_id": self._attempts[trial.id],
            "driver_id": unit["driver_id"],
            "mamba_kernel": kernel,
            "git_commit": unit["git_commit"],
            "git_dirty": unit["git_dirty"],
            "peak_memory_mb": provenance.peak_memory_mb(),
            "started_at": self._started,
            "finished_at": datetime.now(UTC),
            "wall_seconds": wall,
            "device_seconds": wall / len(self._trials) / self._num_in_turn,
        }

    def _checkpoint_if_due(self) -> None:
        waited = time.monotonic() - self._saved_at
        if not self._training.finished and waited > max(
            self._unit["checkpoint_seconds"], self._save_took / CHECKPOINT_COST
        ):
            self.checkpoint()

    def checkpoint(self) -> None:
        from orch.training.checkpoints import snapshot_bytes

        began = time.monotonic()
        for position, member in enumerate(self._training.members):
            self._store.put_checkpoint(member.trial.id, snapshot_bytes(self._training.snapshot(position)))
        self._saved_at = time.monotonic()
        self._save_took = self._saved_at - began
        self._log.event("checkpoint written", step=self._training.step, seconds=round(self._save_took, 3))

    def stop(self, outcome: Outcome = Outcome.INTERRUPTED) -> None:
        """Leave off cleanly: what is unfinished is checkpointed and its attempts end like this."""
        if self._open and self._training is not None:
            if not self._training.finished:
                self.checkpoint()
            for trial_id in list(self._open):
                self._end(trial_id, outcome, step=self.step)
        self._log.flush(now=True)

    def _failed(self, error: BaseException) -> TrialError:
        """Every open attempt of the unit ends with this error, on record before the process is given up."""
        failure = describe(error)
        try:
            for trial_id in list(self._open):
                self._end(trial_id, failure.outcome, failure=failure)
        except OrchError as lost:
            # The very store that the record belongs in may be what failed: the driver is told all the same.
            return TrialError(dataclasses.replace(failure, store_lost=True, message=str(lost)))
        return TrialError(dataclasses.replace(failure, written=True))

    def _end(self, trial_id: str, outcome: Outcome, step: int | None = None, failure: Failure | None = None) -> None:
        self._open.pop(trial_id, None)
        self._log.event("attempt ended", trial_id=trial_id, outcome=str(outcome), step=step)
        self._write_attempt(trial_id, "end", outcome=str(outcome), step=step, failure=failure)

    def _write_attempt(
        self,
        trial_id: str,
        event: str,
        outcome: str | None = None,
        step: int | None = None,
        failure: Failure | None = None,
    ) -> None:
        row: dict[str, Any] = {
            "attempt_id": self._attempts[trial_id],
            "trial_id": trial_id,
            "driver_id": self._unit["driver_id"],
            "event": event,
            "at": datetime.now(UTC),
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "worker": f"{os.uname().nodename}:{os.getpid()}",
            "device": self._unit["device"],
            "outcome": outcome,
            "step": step,
        }
        if failure is not None:
            row |= {
                "error_type": failure.signature.partition(" ")[0],
                "error_signature": failure.signature,
                "error_message": failure.message,
                "traceback": failure.trace,
            }
        self._store.write("attempts", [row])


def _size(parameters: dict[str, Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in parameters.values())
