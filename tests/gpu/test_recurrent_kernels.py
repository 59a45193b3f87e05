"""Kernels of LSTM, RNN, factored and Mamba give the losses and gradients of their plain twins.

They run on a CPU, by Triton's interpreter.
"""

from typing import Any

import pytest

from orch.models.bilinear_family.config import NORMALISATIONS

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


@pytest.mark.parametrize("normalisation", ["none", "unit-final", "rms-final"])
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


@pytest.mark.parametrize("model", ["rnn", "lstm", "factored", "mamba", "rotation", "bilinear"])
def test_trials_on_different_tasks_have_the_losses_that_they_have_alone(interpreter, model):
    settings = {"mamba": MAMBA, "factored": FACTORED}.get(model, {"width": 8})
    assert interpreter.call("compare_across_cells", model=model, settings=settings) < SINGLE
