"""Small trials of every model, for tests that loop over the registries."""

from typing import Any

from orch import models, tasks
from orch.sweeps.trial import Trial, make_trial

MODELS = sorted(models.REGISTRY)
SHARED_BLOCKS = ("delta_product", "gated_delta_net", "lru", "mi_rnn", "mlstm", "rg_lru", "sd_ssm", "unitary_diagonal")
TYPICAL_MODELS = [name for name in MODELS if name not in SHARED_BLOCKS]
"""Models for tests that take seconds each: of those made of residual blocks, which share nearly all of their code, only
DeltaNet, whose core is compiled, and sLSTM, which goes through its positions one by one."""


def small_settings(model: str) -> dict[str, Any]:
    """Return settings that make a model tiny."""
    return {"width": 16, **models.REGISTRY[model].small_settings}


def small_trial(model: str, task: str = "modular_addition", **settings: Any) -> Trial:
    """Make a trial of a few seconds: tiny width, few steps, short tests."""
    quick = {"steps": 20, "eval_every": 10, "validation_samples": 64, "test_samples": 32, "test_length": 40}
    task_type = tasks.REGISTRY[task]
    modulus = {"modulus": 5} if task_type.has_modulus else {}
    defaults = {**modulus, **task_type.example_settings, "curve_lengths": (10, 40), **quick, **small_settings(model)}
    return make_trial(task, model, **(defaults | settings))
