"""Small trials of every model, for tests that loop over the registries."""

from typing import Any

from orch import models
from orch.sweeps.trial import Trial, make_trial

SMALL: dict[str, dict[str, Any]] = {
    "bilinear": {"width": 16},
    "block_diagonal": {"width": 16, "block_size": 2},
    "factored": {"width": 16, "rank": 8},
    "lstm": {"width": 16},
    "mamba": {"width": 16, "layers": 2},
    "rnn": {"width": 16},
    "rotation": {"width": 16},
    "transformer": {"width": 16, "layers": 2, "heads": 2},
}
MODELS = sorted(models.REGISTRY)


def small_trial(model: str, task: str = "modular_addition", **settings: Any) -> Trial:
    """A trial of a few seconds: tiny width, few steps, short tests."""
    quick = {"steps": 20, "eval_every": 10, "validation_samples": 64, "test_samples": 32, "test_length": 40}
    defaults = {"modulus": 5, "curve_lengths": (10, 40), **quick, **SMALL.get(model, {})}
    return make_trial(task, model, **(defaults | settings))
