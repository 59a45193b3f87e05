"""Kernels of LSTM, RNN, factored and Mamba give the losses and gradients of their plain twins, and fit on an A100.

They run on a CPU, by Triton's interpreter, or are compiled for a GPU that is not there.
"""

import importlib
from typing import Any

import pytest

from orch.models.config import NORMALISATIONS

pytestmark = pytest.mark.thorough

EXACT = 1e-11
"""Largest difference relative to the largest entry, in double precision."""
SINGLE = 1e-5
"""The same in single precision, in which kernels run on a GPU."""
FACTORED = {"width": 16, "rank": 5, "embedding_scale": 1.0, "init_scale": 0.5}
"""With initial parameters at which a state that is never divided does not vanish."""
MAMBA = {"width": 12, "state_size": 5, "time_step_rank": 3}


@pytest.fixture(scope="session")
def assert_same(interpreter):
    def compare(model: str, settings: dict[str, Any], **options: Any) -> None:
        for precision, tolerance in (("float64", EXACT), ("float32", SINGLE)):
            differences = interpreter.call(
                "compare", model=model, settings=settings, kernel_precision=precision, **options
            )
            wrong = {name: difference for name, difference in differences.items() if not difference <= tolerance}
            assert not wrong, f"{model} {settings} {options}: relative differences {wrong} in {precision}"

    return compare


@pytest.mark.parametrize(("width", "num_trials"), [(1, 3), (10, 1), (10, 3), (257, 1)])
@pytest.mark.parametrize("model", ["rnn", "lstm"])
def test_gated_recurrences_of_any_width_have_the_gradients_of_the_plain_twin(assert_same, model, width, num_trials):
    assert_same(model, {"width": width}, num_trials=num_trials, longest=3, num_samples=3)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("additive", ["none", "input+constant"])
def test_factors_have_the_gradients_of_the_plain_twin_with_every_normalisation(assert_same, normalisation, additive):
    options = {"train_normalisation": normalisation, "eval_normalisation": normalisation, "additive": additive}
    assert_same("factored", FACTORED | options, num_trials=2, longest=3, num_samples=4)


@pytest.mark.parametrize("settings", [{"width": 9, "rank": 2}, {"width": 5, "rank": 40}])
def test_any_number_of_factors_has_the_gradients_of_the_plain_twin(assert_same, settings):
    # The root of the width is computed in single precision.
    assert_same("factored", settings | {"train_normalisation": "unit", "eval_normalisation": "unit"}, num_trials=1)


def test_frozen_factors_train_their_head_alone(assert_same):
    assert_same("factored", FACTORED | {"frozen": True}, num_trials=2, longest=3)


@pytest.mark.parametrize("normalisation", ["none", "unit", "rms", "rms-final"])
def test_a_factored_state_that_vanishes_has_the_finite_gradients_of_the_plain_twin(interpreter, normalisation):
    settings = FACTORED | {"train_normalisation": normalisation, "eval_normalisation": normalisation}
    # The twin computes in single precision, because it is there that the size is rounded to zero.
    options = {"state_size": 1e-24, "precision": "float32", "num_trials": 1, "num_samples": 4, "longest": 3}
    differences = interpreter.call("compare", model="factored", settings=settings, **options)
    assert max(differences.values()) <= 2e-4, differences


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_mamba_has_the_gradients_of_the_plain_twin(assert_same, layers):
    assert_same("mamba", MAMBA | {"layers": layers}, num_trials=2, num_samples=4)


@pytest.mark.parametrize("settings", [{"kernel_size": 1}, {"kernel_size": 3}, {"state_size": 1}, {"state_size": 16}])
def test_mamba_of_any_sizes_has_the_gradients_of_the_plain_twin(assert_same, settings):
    assert_same("mamba", MAMBA | {"layers": 2} | settings, num_trials=1, num_samples=3, longest=3)


@pytest.mark.parametrize("longest", [2, 3, 9])
def test_mamba_computes_states_again_that_were_not_kept_whatever_the_length(assert_same, longest):
    assert_same("mamba", MAMBA | {"width": 20}, num_trials=1, num_samples=4, longest=longest)


STRIDES_AND_SIZES = {
    *("num_samples", "H", "F", "R", "P", "T", "B", "width", "Q", "stride", "tokens_k", "tokens_b", "u_k", "u_t", "u_b"),
    *("tokens_stride_k", "tokens_stride_b", "gates_stride", "before_stride", "after_stride", "state_stride"),
    *("g_u_stride", "u_stride", "y_stride", "size_stride", "z_k", "z_t", "z_b"),
}
CEILINGS = [
    ("gates.lstm_forward_kernel", {"FIRST": False, "BLOCK": 256}, 40, 1024),
    ("gates.lstm_backward_kernel", {"FIRST": False, "BLOCK": 256}, 48, 0),
    ("gates.elman_forward_kernel", {"FIRST": False, "BLOCK": 256}, 32, 0),
    ("gates.elman_backward_kernel", {"BLOCK": 256}, 32, 0),
    ("factors.gate_kernel", {"BLOCK": 256}, 32, 0),
    ("factors.gate_back_kernel", {"BLOCK": 256}, 32, 0),
    ("factors.finish_kernel", {"WIDTH": 256, "KIND": "rms", "ADDS": True, "BLOCK": 256}, 32, 1024),
    ("factors.finish_back_kernel", {"WIDTH": 256, "KIND": "rms", "BLOCK": 256}, 32, 1024),
    ("rms_norm.forward_kernel", {"EPSILON": 1e-5}, 40, 1024),
    ("rms_norm.backward_kernel", {"EPSILON": 1e-5}, 64, 2048),
    ("convolution.forward_kernel", {}, 40, 2048),
    ("convolution.backward_kernel", {}, 64, 2048),
    ("selective_scan.forward_kernel", {"KEEP": True, "AT_END": False}, 96, 128),
    ("selective_scan.forward_kernel", {"KEEP": True, "AT_END": True}, 96, 128),
    ("selective_scan.backward_kernel", {"AT_END": False}, 224, 128),
    ("selective_scan.backward_kernel", {"AT_END": True}, 224, 128),
]
"""Kernels with their constants at width 256, then the registers of a thread and the bytes of shared memory."""


def options_of(name: str) -> dict[str, Any]:
    """Return the constants that a kernel's own file chooses at width 256."""
    from orch.models.gpu_kernels import convolution, rms_norm, selective_scan

    if name.startswith("rms_norm"):
        return dict(rms_norm.norm_options(256))
    if name.startswith("convolution"):
        return dict(convolution.convolution_options(4))
    if name.startswith("selective_scan"):
        return dict(selective_scan.scan_options(16, at_end=False))
    return {}


@pytest.mark.parametrize(("name", "constants", "registers", "shared"), CEILINGS)
def test_kernels_fit_into_the_registers_of_an_a100(triton, name, constants, registers, shared):
    from tests.gpu.resources import compile_for_a100

    module, _, kernel_name = name.partition(".")
    kernel = getattr(importlib.import_module(f"orch.models.gpu_kernels.{module}"), kernel_name)
    given = options_of(name) | constants
    types = {
        parameter.name: "i32"
        if parameter.name in STRIDES_AND_SIZES
        else "*i64"
        if parameter.name in ("tokens", "end")
        else "*fp32"
        for parameter in kernel.params
        if parameter.name not in given
    }
    found = compile_for_a100(kernel, **types, **given)
    assert found.spilled == 0
    assert found.registers <= registers, found
    assert found.shared <= shared, found
