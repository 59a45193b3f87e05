"""Finished trials with given scores, written to a store without training."""

import dataclasses
import datetime
from collections.abc import Callable
from typing import Any

from orch.store import Store, curve_rows, trial_row
from orch.sweeps.result import CurvePoint, Result, StopReason
from orch.sweeps.trial import Trial, make_trial

START = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)


def finish(
    store: Store,
    trial: Trial,
    ood: float = 0.5,
    validation: float = 1.0,
    at_100: float = 0.5,
    diverged: bool = False,
    change: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> str:
    """Write a trial's result with these scores and return its id; `change` may alter its row before that."""
    scores = dict.fromkeys(trial.tested_lengths, at_100) | {trial.test_length: ood}
    result = Result(
        trial=trial,
        stop_reason=StopReason.DIVERGED if diverged else StopReason.BUDGET,
        steps=200,
        seconds=2.0,
        curve=tuple(CurvePoint(100 * n, 1 / n, 1 / n, validation, float(n)) for n in (1, 2)),
        test_accuracy=scores,
        majority=dict.fromkeys(scores, 0.1),
        parameters={},
    )
    times = {"started_at": START, "finished_at": START + datetime.timedelta(hours=1)}
    row = trial_row(result, {"attempt_id": f"of-{trial.id}"} | times)
    store.write_trials([change(row)], curve_rows(result, f"of-{trial.id}"))
    return trial.id


def trials(model: str = "rnn", task: str = "modular_addition", **settings: Any) -> list[Trial]:
    """Return the trials of a cell: two learning rates with two seeds each."""
    first = make_trial(task, model, **({"modulus": 3, "width": 8} | settings))
    return [
        dataclasses.replace(first, learning_rate=rate, init_seed=seed, data_seed=seed)
        for rate in (1e-2, 1e-3)
        for seed in (0, 1)
    ]
