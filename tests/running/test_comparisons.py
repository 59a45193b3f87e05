"""The comparisons of `orch doctor`: healthy devices pass, whatever their order of sums, and sick ones fail."""

import dataclasses
import math
import os

import pytest
import torch

from orch.models.recurrence import batch_positions, blocks, token_lookup
from orch.running.doctor import Failed, gradients, steps
from orch.running.doctor.agreement import Agreement, Computed
from orch.running.doctor.double_precision import compute, references
from orch.running.doctor.examined_trials import pack_of, published, small
from orch.running.doctor.rounding import Rounding, find_scales
from orch.training import static_step, train
from orch.training.adam import StackedAdam
from orch.training.checkpoints import parse_snapshot
from orch.training.train import Training
from tests.running import devices
from tests.running.devices import Healthy, code_for_gpus, scaled_gradient, sick
from tests.small import TYPICAL_MODELS
from tests.training.operations import Operations


def compare_gradients(model, num_steps=(0,)):
    return gradients.compare_with_double([(small(model), num_steps)], "cpu")


def smallest_parameter(model):
    """Return the trained parameter with the fewest numbers."""
    shapes = small(model).model.shapes(small(model).vocabulary)
    return min(shapes, key=lambda name: math.prod(shapes[name]))


def compare_pack(model, num_steps=(0, 1)):
    return steps.compare_pack([(small(model), num_steps)], "cpu")


@pytest.mark.thorough
@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_a_healthy_device_passes_with_noise_in_the_last_places_of_every_operation(model, monkeypatch):
    with code_for_gpus(monkeypatch), Healthy() as device:
        assert compare_gradients(model, (0, 1, 8)).startswith("within ")
        assert compare_pack(model, (0, 8)).startswith("losses and gradients within ")
        assert "the next losses and gradients within" in steps.compare_resumed(small(model), "cpu")
    assert device.num_changed > 1000


@pytest.mark.thorough
@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_a_healthy_device_passes_at_the_published_size(model, monkeypatch):
    with code_for_gpus(monkeypatch), Healthy():
        assert gradients.compare_with_double([(published(model), (0, 2))], "cpu").startswith("within ")


@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_products_of_few_digits_fail(model, monkeypatch):
    with code_for_gpus(monkeypatch), devices.FewDigits(), pytest.raises(Failed, match="double precision on the CPU"):
        compare_gradients(model, (0, 1))


@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_an_error_of_one_percent_in_the_gradient_of_any_parameter_fails_by_its_name(model):
    training = Training(pack_of(small(model), 2))
    found = compute(training.network, training.next_batch())
    for one, (exact, rounding) in zip(found, references(training.network, training.next_batch()), strict=True):
        for parameter, gradient in one.gradients.items():
            agreement = Agreement()
            agreement.compare("here", one, exact, rounding)
            assert agreement.verdict("double precision").startswith("within ")
            wrong = one._replace(gradients=one.gradients | {parameter: 1.01 * gradient})
            agreement.compare("here", wrong, exact, rounding)
            with pytest.raises(Failed, match=f"the gradient of {parameter} here differs by 1.0e-02"):
                agreement.verdict("double precision")


@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_a_device_with_such_an_error_in_its_smallest_parameter_fails(model):
    parameter = smallest_parameter(model)
    with sick(scaled_gradient(parameter)), pytest.raises(Failed, match=f"the gradient of {parameter} after 0 steps"):
        compare_gradients(model)


@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_a_pack_with_such_an_error_in_one_of_its_trials_fails(model):
    parameter = smallest_parameter(model)
    with (
        sick(scaled_gradient(parameter, trial=1, from_size=2)),
        pytest.raises(Failed, match=f"the gradient of {parameter} in step 1 .* from each trial alone"),
    ):
        compare_pack(model, (0,))


@pytest.mark.parametrize("model", TYPICAL_MODELS)
@pytest.mark.parametrize("fault", ["dropped_position", "wrong_mask"])
def test_one_wrong_sample_fails(model, fault):
    with sick(getattr(devices, fault)), pytest.raises(Failed, match="differs by"):
        compare_gradients(model)


@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_gradients_of_the_batch_before_fail(model):
    parameter = smallest_parameter(model)
    with sick(devices.stale_gradient(parameter)), pytest.raises(Failed, match=parameter):
        compare_gradients(model, (0, 1))


def test_a_number_that_is_not_one_fails():
    with sick(scaled_gradient("head.bias", factor=float("nan"))), pytest.raises(Failed, match=r"head\.bias"):
        compare_gradients("rnn")


def test_a_gradient_that_is_zero_in_exact_arithmetic_is_measured_by_the_largest():
    exact = Computed(1.0, {"weight": torch.ones(4), "bias": torch.full((4,), 1e-17)})
    rounding = Rounding(12, find_scales(exact.gradients), {"weight": 1.0, "bias": 1.0})

    def compare(bias):
        agreement = Agreement()
        found = Computed(1.0, exact.gradients | {"bias": torch.full((4,), bias)})
        agreement.compare("here", found, exact, rounding)
        return agreement.verdict("double precision")

    assert compare(1e-8).startswith("within 1.0e-08")
    with pytest.raises(Failed, match=r"the gradient of bias here differs by 1\.0e-02"):
        compare(1e-2)


def test_a_wrong_test_fails(monkeypatch):
    right = gradients.evaluate

    def wrong(network, batch):
        return [
            score if network["head.bias"].dtype == torch.float64 else score._replace(loss=score.loss * 1.001)
            for score in right(network, batch)
        ]

    monkeypatch.setattr(gradients, "evaluate", wrong)
    with pytest.raises(Failed, match="the loss of a test after 0 steps"):
        compare_gradients("rnn")


def test_an_optimiser_with_the_rate_of_another_trial_fails(monkeypatch):
    right = StackedAdam.__init__

    def wrong(self, parameters, rates, *more):
        right(self, parameters, [rates[0]] * len(rates), *more)

    monkeypatch.setattr(StackedAdam, "__init__", wrong)
    with pytest.raises(Failed, match=r"Adam's update of .* from double precision"):
        compare_pack("rnn")


def test_an_optimiser_with_a_wrong_second_moment_fails(monkeypatch):
    right = StackedAdam.update

    def wrong(self, given):
        self.second[-1].mul_(1.01)
        right(self, given)

    monkeypatch.setattr(StackedAdam, "update", wrong)
    with pytest.raises(Failed, match=r"Adam's second moment of head\.bias"):
        compare_pack("rnn")


@pytest.mark.parametrize(
    ("what", "said"),
    [("parameters", "weights"), ("first", "first moments"), ("second", "second moments"), ("step", "another step")],
)
def test_a_checkpoint_that_loses_a_bit_fails(what, said, monkeypatch):
    def parse(*given):
        snapshot = parse_snapshot(*given)
        if what == "step":
            return dataclasses.replace(snapshot, step=snapshot.step + 1)
        state = dict(getattr(snapshot, what))
        state["head.bias"] = state["head.bias"] * (1 + 2.0**-23)
        return dataclasses.replace(snapshot, **{what: state})

    monkeypatch.setattr(steps, "parse_snapshot", parse)
    with pytest.raises(Failed, match=said):
        steps.compare_resumed(small("rnn"), "cpu")


def test_a_resumed_optimiser_that_counts_from_the_start_fails(monkeypatch):
    monkeypatch.setattr(StackedAdam, "set_step", lambda self, step: None)
    with pytest.raises(Failed, match="Adam's update"):
        steps.compare_resumed(small("rnn"), "cpu")


@pytest.fixture
def recorder(monkeypatch):
    """Record steps on the CPU, as a GPU would, unless they are to run one operation at a time."""
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    for module in (blocks, batch_positions, token_lookup):
        monkeypatch.setattr(module, "on_host", lambda tensor: False)
    kind = Operations()
    for module in (steps, train):
        monkeypatch.setattr(
            module, "find_recorder", lambda device: None if os.environ.get("ORCH_CAPTURE") == "off" else kind
        )
    return kind


@pytest.mark.parametrize("model", ["rotation", "transformer"])
def test_recorded_steps_that_compute_the_same_pass(model, recorder):
    found = steps.compare_recorded(small(model), "cpu")
    assert found == "losses and gradients bit for bit those of ordinary steps"
    assert recorder.num_recorded == 1
    assert "ORCH_CAPTURE" not in os.environ


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["factored", "rotation", "transformer"])
def test_recorded_steps_that_round_in_their_own_way_pass(model, recorder):
    with Healthy():
        assert steps.compare_recorded(small(model), "cpu").startswith("losses and gradients within ")


def test_recorded_steps_that_repeat_one_batch_fail(recorder, monkeypatch):
    right = static_step._take_step

    def stuck(update, samples_SXKB, *more):
        right(update, samples_SXKB[:1].expand_as(samples_SXKB), *more)

    monkeypatch.setattr(static_step, "_take_step", stuck)
    with pytest.raises(Failed, match=r"from ordinary steps.*ORCH_CAPTURE=off"):
        steps.compare_recorded(small("rotation"), "cpu")


def test_recorded_steps_with_an_error_of_one_percent_fail(recorder, monkeypatch):
    right = static_step._take_step

    def wrong(update, *others):
        with sick(scaled_gradient("head.bias")):
            right(update, *others)

    monkeypatch.setattr(static_step, "_take_step", wrong)
    with pytest.raises(Failed, match=r"the gradient of head\.bias"):
        steps.compare_recorded(small("rotation"), "cpu")


def test_steps_that_cannot_be_recorded_fail(recorder, monkeypatch):
    def refuse(step):
        raise RuntimeError("not permitted")

    monkeypatch.setattr(recorder, "record", refuse)
    with pytest.raises(Failed, match="cannot be recorded"):
        steps.compare_recorded(small("rotation"), "cpu")
