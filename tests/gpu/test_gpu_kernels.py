"""Kernels for GPUs give the losses and gradients of their plain twins: run on a CPU by Triton's interpreter."""

from typing import Any

import pytest

pytestmark = pytest.mark.thorough

LARGE = {"embedding_scale": 1.0, "init_scale": 0.5}
"""Initial parameters at which a state that is never divided does not vanish."""
NORMALISATIONS = ("none", "unit", "rms", "block", "unit-final", "rms-final", "block-final")
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "blocks of 2": ("block_diagonal", {"width": 6, "block_size": 2}),
    "blocks of 9": ("block_diagonal", {"width": 18, "block_size": 9}),
    "rotation": ("rotation", {"width": 6}),
    "bilinear": ("bilinear", {"width": 9}),
}
TOLERANCE = 1e-5


@pytest.fixture(scope="session")
def assert_same(interpreter):
    def compare(model: str, settings: dict[str, Any], tolerance: float = TOLERANCE, **options: Any) -> None:
        differences = interpreter.call("compare", model=model, settings=settings, **options)
        wrong = {name: difference for name, difference in differences.items() if not difference <= tolerance}
        assert not wrong, f"{model} {settings} {options}: relative differences {wrong}"

    return compare


@pytest.mark.parametrize(
    ("b", "width", "num_trials"),
    [(1, 1, 1), (1, 33, 3), (2, 2, 1), (2, 26, 3), (3, 9, 1), (4, 8, 3), (8, 8, 1), (8, 24, 1)],
)
def test_small_blocks_of_any_number_have_the_gradients_of_the_plain_twin(assert_same, b, width, num_trials):
    assert_same("block_diagonal", {"width": width, "block_size": b}, num_trials=num_trials)


@pytest.mark.parametrize(
    ("model", "settings", "num_trials"),
    [
        ("bilinear", {"width": 9}, 3),
        ("bilinear", {"width": 33}, 1),
        ("block_diagonal", {"width": 34, "block_size": 17}, 1),
    ],
)
def test_large_blocks_of_any_size_have_the_gradients_of_the_plain_twin(assert_same, model, settings, num_trials):
    assert_same(model, settings, num_trials=num_trials)


def test_rotations_have_the_gradients_of_the_plain_twin(assert_same):
    assert_same("rotation", {"width": 6}, num_trials=3)


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("kind", ["blocks of 2", "blocks of 9"])
def test_every_normalisation_with_an_additive_term_is_that_of_the_plain_twin(assert_same, kind, normalisation):
    model, settings = KINDS[kind]
    options = {"train_normalisation": normalisation, "eval_normalisation": normalisation}
    assert_same(model, settings | options | LARGE | {"additive": "input+constant"})


@pytest.mark.parametrize("additive", ["constant", "input"])
@pytest.mark.parametrize("kind", ["rotation", "bilinear"])
def test_every_additive_term_is_that_of_the_plain_twin(assert_same, kind, additive):
    model, settings = KINDS[kind]
    assert_same(model, settings | {"additive": additive})


@pytest.mark.parametrize("kind", ["blocks of 2", "bilinear"])
def test_a_frozen_network_trains_its_head_alone(assert_same, kind):
    model, settings = KINDS[kind]
    assert_same(model, settings | {"frozen": True})


@pytest.mark.parametrize(("kind", "modulus"), [("blocks of 2", 70), ("bilinear", 30)])
def test_a_large_vocabulary_has_the_gradients_of_the_plain_twin(assert_same, kind, modulus):
    model, settings = KINDS[kind]
    assert_same(model, settings, modulus=modulus, longest=2)


@pytest.mark.parametrize("normalisation", ["none", "unit-final", "rms-final", "block-final"])
@pytest.mark.parametrize("size", [1e-38, 1e-24, 1e-20])
def test_a_state_that_vanishes_has_the_finite_gradients_of_the_plain_twin(assert_same, size, normalisation):
    model, settings = KINDS["blocks of 2"]
    settings = settings | {"train_normalisation": normalisation, "eval_normalisation": normalisation}
    # The twin computes in single precision, because it is there that the size is rounded to zero.
    assert_same(model, settings, tolerance=2e-4, state_size=size, precision="float32")


@pytest.mark.parametrize(("shape", "num_tokens"), [([7, 9], 1), ([3, 5, 130], 7), ([300, 4], 19)])
@pytest.mark.parametrize("recipe", [False, True])
def test_adam_on_a_gradient_that_is_not_written_out_is_adam_on_the_gradient(interpreter, shape, num_tokens, recipe):
    differences = interpreter.call("compare_adam", shape=shape, num_tokens=num_tokens, recipe=recipe)
    assert max(differences.values()) < 2e-6, differences


def test_positions_are_grouped_by_token_in_the_order_of_time_and_sample(interpreter):
    for num_samples in (1, 1030):
        found = interpreter.call("compare_groups", num_samples=num_samples, num_tokens=3, num_readable=2)
        assert found["order"] == found["expected_order"]
        assert found["start"] == found["expected_start"]


def test_a_wrong_gradient_would_be_noticed(interpreter):
    differences = interpreter.call("compare", model="rotation", settings={"width": 6}, corrupt=True)
    assert differences["recurrence.angle"] > TOLERANCE


@pytest.mark.parametrize("model", ["rotation", "bilinear", "lstm", "factored", "mamba"])
def test_steps_recorded_once_and_replayed_give_the_numbers_of_ordinary_steps(interpreter, model):
    found = interpreter.call("compare_replayed_steps", model=model)
    assert found["kernel"] == "triton"
    assert found["num_recorded"] == 1
    assert found["different"] == []
    assert found["same_operations"]
    assert any("orch" in operation for operation in found["operations"])
