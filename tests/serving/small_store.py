"""A store with a sweep half done: results, a failure with hostile text, and a trial in training."""

import time
from datetime import UTC, datetime

from orch.running.lease import Lease
from orch.running.running_trial import RunningTrial
from orch.store import Store
from orch.store.attempts import Attempt, AttemptError, Outcome
from orch.sweeps.experiments import demo
from orch.sweeps.scales import LAPTOP
from orch.sweeps.selection import Results
from orch.sweeps.trial import Trial
from tests.finished_trials import finish

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\x1b]0;owned\x07"
CELLS = list(demo.cells(LAPTOP, Results.none()))
TRIALS: list[Trial] = [trial for cell in CELLS for trial in cell.trials if isinstance(trial, Trial)]


def record_sweep(store: Store, where: str = "", waiting: int = 0) -> None:
    seconds = {trial.id: 10.0 for trial in TRIALS}
    values = {"sweeps": ["demo"], "scale": "laptop", "where": where.split(), "at": "2026-11-01", "code": []}
    store.put_json(f"sweeps/demo-laptop{where}.json", values | {"seconds": seconds, "waiting": waiting})


def finish_trials(store: Store, trials: list[Trial], accuracy: float = 1.0) -> None:
    finish(store, trials, steps=100, accuracy=lambda trial: accuracy, finished_at=datetime.now(UTC))


def fail(store: Store, trial: Trial) -> None:
    attempt = Attempt(attempt_id=f"bad-{trial.id}", trial_id=trial.id, driver_id="gone", device="cpu")
    error = AttemptError(
        error_type="ValueError", error_signature=f"ValueError: {HOSTILE}", error_message=HOSTILE, traceback=HOSTILE
    )
    store.write("attempts", [attempt.start_row(), attempt.end_row(Outcome.FAILED, 3, error)])


def train(store: Store, lease: Lease, trial: Trial, num_points: int) -> None:
    """Publish that a trial is in training, with this many validations."""
    curve = tuple((100 * n, 1 / n, 1 - 1 / n) for n in range(1, num_points + 1))
    running = RunningTrial(
        trial.id, 100 * num_points, 3000, train_loss=1 / num_points, validation_accuracy=1 - 1 / num_points,
        label=trial.label_in_cell, curve=curve,
    )  # fmt: skip
    lease.counts = {"seconds_left": 1800.0, "trials": [running.to_dict()]}
    lease._write()


def lose(store: Store, trial: Trial) -> None:
    """Begin an attempt whose driver is dead."""
    attempt = Attempt(attempt_id=f"lost-{trial.id}", trial_id=trial.id, driver_id="gone", device="cpu")
    store.write("attempts", [attempt.start_row()])


def start_attempt(store: Store, lease: Lease, trial: Trial) -> None:
    attempt = Attempt(
        attempt_id=f"now-{trial.id}-{time.time_ns()}", trial_id=trial.id, driver_id=lease.driver_id, device="cpu"
    )
    store.write("attempts", [attempt.start_row()])
