"""The recipe of a trial: how its parameters are updated, on which lengths, and in which precision. No torch.

The defaults are the paper's: Adam at a constant learning rate, in single precision, on all lengths from the first step.
`orch.training.optimisers`, `clipping`, `schedules` and `precision` carry it out.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from orch.core.errors import InvalidSettings

if TYPE_CHECKING:
    from orch.sweeps.trial import Trial

ADAM, ADAMW, SGD = "adam", "adamw", "sgd"
OPTIMISERS = (ADAM, ADAMW, SGD)
CONSTANT, COSINE = "constant", "cosine"
SCHEDULES = (CONSTANT, COSINE)
FLOAT32, FLOAT64, BFLOAT16 = "float32", "float64", "bfloat16"
PRECISIONS = (FLOAT32, FLOAT64, BFLOAT16)

RECIPE = (
    "optimiser",
    "momentum",
    "weight_decay",
    "clip_norm",
    "schedule",
    "warmup_steps",
    "curriculum",
    "precision",
    "stop_accuracy",
)
"""The settings of a trial that are its recipe, beside learning rate, batch size and steps."""


def recipe_problems(trial: "Trial") -> list[str]:
    """Return everything wrong with the recipe of a trial, each as a sentence that names the remedy."""
    found = []
    for name, known in (("optimiser", OPTIMISERS), ("schedule", SCHEDULES), ("precision", PRECISIONS)):
        if getattr(trial, name) not in known:
            found.append(f"{name} {getattr(trial, name)!r} is unknown: use {', '.join(known[:-1])} or {known[-1]}")
    for name in ("weight_decay", "clip_norm"):
        value = getattr(trial, name)
        if not (math.isfinite(value) and value >= 0):
            found.append(f"{name} {value} is not a finite number from 0: use a positive number, or 0 for none")
    if not 0 <= trial.momentum < 1:
        found.append(f"momentum {trial.momentum} is not between 0 and 1: use one such as 0.9, or 0 for none")
    elif trial.momentum and trial.optimiser != SGD:
        found.append(f"momentum is a setting of {SGD}, not of {trial.optimiser}: leave it out, or use optimiser {SGD}")
    if trial.warmup_steps < 0:
        found.append(f"warmup_steps {trial.warmup_steps} is negative: use 0 or more")
    elif trial.warmup_steps >= trial.steps > 0:
        found.append(f"warmup_steps {trial.warmup_steps} leave none of the {trial.steps} steps: use fewer")
    if not 0 <= trial.curriculum <= 1:
        found.append(f"curriculum {trial.curriculum} is not a share of the steps: use a number from 0 to 1")
    elif trial.curriculum and trial.train_examples:
        found.append("a curriculum needs fresh samples of many lengths: leave out train_examples, or curriculum")
    if not 0 <= trial.stop_accuracy <= 1:
        found.append(f"stop_accuracy {trial.stop_accuracy} cannot be reached: use at most 1, or 0 to not stop by it")
    return found


def check_device(trials: Iterable["Trial"], device: str) -> None:
    """Raise an error if a trial cannot be trained on a kind of device, such as "cpu"."""
    if device.startswith("cpu") and any(trial.precision == BFLOAT16 for trial in trials):
        raise InvalidSettings([f"precision {BFLOAT16} needs a GPU, and this is a CPU: use {FLOAT32}, or a GPU"])
