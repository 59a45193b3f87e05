"""The time of a training step by arithmetic: launches, bytes and operations."""

import dataclasses

import pytest

from orch import models
from orch.planning import step_time
from orch.planning.step_time import A100, pack_seconds, step_seconds
from orch.sweeps.trial import make_trial
from tests.training.own_modules import Masked

MEASURED = {
    # Milliseconds of CPU time of a training step alone and in a pack of four, on one core of an AMD EPYC that was
    # shared with other work, with the kernels that models prefer there.
    ("bilinear", 64): (0.68, 2.39),
    ("block_diagonal", 64): (0.31, 1.00),
    ("rotation", 64): (0.22, 0.56),
    ("factored", 64): (1.71, 4.10),
    ("rnn", 64): (0.94, 1.69),
    ("lstm", 64): (1.90, 4.13),
    ("mamba", 64): (1.53, 5.93),
    ("transformer", 64): (1.67, 5.43),
    ("delta_net", 64): (0.98, 3.24),
    ("bilinear", 256): (22.6, None),
    ("rotation", 256): (0.36, 1.13),
    ("factored", 256): (4.62, 15.4),
    ("rnn", 256): (2.65, 6.48),
    ("lstm", 256): (8.45, 24.2),
    ("mamba", 256): (4.96, 20.3),
}


def trial(model, width=256, **settings):
    return make_trial("modular_addition", model, modulus=5, width=width, **settings)


@pytest.mark.parametrize(("model", "width"), MEASURED)
def test_the_computed_time_on_a_core_is_about_the_measured_one(model, width):
    alone, of_four = MEASURED[model, width]
    assert 1e3 * step_seconds(trial(model, width)) == pytest.approx(alone, rel=0.4)
    if of_four is not None:
        assert 1e3 * step_seconds(trial(model, width), 4) == pytest.approx(of_four, rel=0.4)


def test_a_step_that_is_not_recorded_waits_for_the_host(monkeypatch):
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    model = trial("rotation")
    recorded = step_seconds(model, 1, "cuda")
    monkeypatch.setenv("ORCH_CAPTURE", "off")
    launches = model.model.num_launches(model.vocabulary, model.batch_size, 12, "plain")
    assert step_seconds(model, 1, "cuda") > launches * A100.host_seconds_per_launch > 2 * recorded


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", sorted(models.REGISTRY))
def test_a_pack_takes_longer_than_a_trial_and_less_than_its_trials_one_by_one(name, device):
    model = trial(name, width=16)
    assert step_seconds(model, 1, device) < step_seconds(model, 4, device) < 4 * step_seconds(model, 1, device)
    assert pack_seconds(model, 1, 50, device) < pack_seconds(model, 4, 50, device)


def test_what_a_gpu_is_assumed_to_take_decides_the_time(monkeypatch):
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    bound_by_memory, bound_by_launches = trial("bilinear"), trial("rotation")
    before = {each: step_seconds(each, 1, "cuda") for each in (bound_by_memory, bound_by_launches)}
    for field, value, slower in (
        ("bytes_per_second", A100.bytes_per_second / 2, bound_by_memory),
        ("seconds_per_launch", A100.seconds_per_launch * 2, bound_by_launches),
    ):
        monkeypatch.setattr(step_time, "A100", dataclasses.replace(A100, **{field: value}))
        for each in before:
            grown = step_seconds(each, 1, "cuda") / before[each]
            assert (grown > 1.35) == (each is slower), (field, each.label, grown)


def test_a_wrapped_module_is_not_recorded():
    assert not step_time.is_captured(Masked(width=8))
    assert step_time.is_captured(trial("rnn").model)
