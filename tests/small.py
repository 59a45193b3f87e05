"""Small trials of every model, for tests that loop over the registries."""

from typing import Any

from orch import models, tasks
from orch.sweeps.trial import Trial, make_trial

MODELS = sorted(models.REGISTRY)


def small_settings(model: str) -> dict[str, Any]:
    """Return settings that make a model tiny."""
    return {"width": 16, **models.REGISTRY[model].small_settings}


def small_trial(model: str, task: str = "modular_addition", **settings: Any) -> Trial:
    """Make a trial of a few seconds: tiny width, few steps, short tests."""
    quick = {"steps": 20, "eval_every": 10, "validation_samples": 64, "test_samples": 32, "test_length": 40}
    modulus = {"modulus": 5} if tasks.REGISTRY[task].has_modulus else {}
    defaults = {**modulus, "curve_lengths": (10, 40), **quick, **small_settings(model)}
    return make_trial(task, model, **(defaults | settings))
