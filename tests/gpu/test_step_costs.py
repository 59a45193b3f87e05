"""The counts from which hours on a GPU are estimated, against those of the code that runs there."""

from typing import Any

import pytest

from orch.planning import step_time
from orch.sweeps.trial import Trial, make_trial
from tests.gpu import kernels
from tests.gpu.kernels import KERNELS, KINDS

COUNTED = {("plain", kind): count for kind, count in KERNELS.items()} | {
    ("triton", kind): count for kind, count in vars(kernels).get("TRITON_KERNELS", {}).items()
}
VARIED: dict[str, tuple[str, str, int, dict[str, Any]]] = {
    "bilinear, 50 symbols": ("bilinear", "modular_addition", 1, {"modulus": 50}),
    "bilinear, long": ("bilinear", "modular_arithmetic", 1, {"modulus": 5}),
    "bilinear, additive": ("bilinear", "modular_addition", 1, {"modulus": 5, "additive": "input+constant"}),
    "blocks of 1, not normalised": (
        *("block_diagonal", "modular_addition", 1),
        {"modulus": 5, "block_size": 1, "train_normalisation": "none"},
    ),
    "blocks of 2, pack": ("block_diagonal", "modular_addition", 9, {"modulus": 5, "block_size": 2}),
    "blocks of 64, pack": ("block_diagonal", "modular_addition", 9, {"modulus": 5, "block_size": 64}),
    "rotation, long": ("rotation", "modular_arithmetic", 1, {"modulus": 5}),
    "factored, long": ("factored", "modular_arithmetic", 1, {"modulus": 5}),
    "factored, multiplied out": ("factored", "modular_addition", 1, {"modulus": 5, "width": 64}),
    "lstm, long": ("lstm", "modular_arithmetic", 1, {"modulus": 5}),
    "rnn, pack": ("rnn", "modular_addition", 9, {"modulus": 5}),
    "mamba, long": ("mamba", "modular_arithmetic", 1, {"modulus": 5, "layers": 2}),
    "transformer, pack": ("transformer", "modular_addition", 9, {"modulus": 5, "layers": 2}),
}


def predicted_launches(trial: Trial, kernel: str) -> float:
    num_tokens = trial.task.num_tokens(trial.max_inputs)
    return trial.model.num_launches(trial.vocabulary, trial.batch_size, num_tokens, kernel)


@pytest.mark.parametrize(("kernel", "kind"), COUNTED)
def test_a_models_settings_say_how_many_kernels_a_step_starts(kernel, kind):
    """The counts are compared with those of the code in `test_fake_gpu.py`."""
    model, settings = KINDS[kind]
    trial = make_trial("modular_addition", model, modulus=5, **settings)
    assert predicted_launches(trial, kernel) == pytest.approx(COUNTED[kernel, kind], rel=0.1)


@pytest.mark.thorough
@pytest.mark.parametrize("name", VARIED)
def test_counts_hold_for_other_tasks_settings_and_packs(simulation, name):
    model, task, size, settings = VARIED[name]
    counted = simulation.call("count_step", model=model, task=task, size=size, settings=settings)
    trial, kernel = make_trial(task, model, **settings), counted["kernel"]
    assert predicted_launches(trial, kernel) == pytest.approx(counted["launches"], rel=0.1)
    if kernel == "plain":
        assert step_time.bytes_moved(trial, size, kernel) == pytest.approx(counted["moved"], rel=0.25)
    # Kernel by kernel, each takes the longest of its launch, its bytes and its operations. The estimate adds some.
    assert 0.7 < step_time.device_seconds(trial, size, kernel) / counted["seconds"] < 1.5
