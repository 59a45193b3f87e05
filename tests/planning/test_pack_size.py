"""The size of packs, and the speed they are expected to gain."""

import pytest

from orch import models
from orch.planning.doctor_times import DoctorTimes
from orch.planning.pack_size import PACES, memory, pack_size, stacks_exactly
from orch.planning.step_time import speedup
from orch.sweeps.trial import make_trial
from tests.new_process import modules_imported
from tests.small import small_trial

MEASURED = {
    # Training steps per second of all trials in a pack of nine over those of one alone, on one core of a cloud server.
    # Compiled kernels serve one trial after the other, and gain less.
    16: {"block_diagonal": 1.8, "rotation": 2.2, "rnn": 6.0, "lstm": 5.1, "factored": 4.3, "bilinear": 1.9},
    64: {"block_diagonal": 1.7, "rotation": 1.9, "rnn": 3.0, "lstm": 2.3, "factored": 2.0, "bilinear": 1.0},
    128: {"block_diagonal": 1.4, "rotation": 1.8, "rnn": 1.2, "lstm": 1.0, "factored": 1.0, "bilinear": 0.9},
}


def trial(model, width=64, **settings):
    return make_trial("modular_addition", model, modulus=5, width=width, **settings)


@pytest.mark.parametrize(("width", "model"), [(width, model) for width in MEASURED for model in MEASURED[width]])
def test_the_expected_gain_is_about_the_measured_one(width, model):
    assert speedup(trial(model, width), 9) == pytest.approx(MEASURED[width][model], rel=0.35)


@pytest.mark.parametrize("name", sorted(models.REGISTRY))
def test_larger_packs_gain_more_for_models_that_pack_as_long_as_they_fit_in_the_cache(name):
    gains = [speedup(trial(name, width=16), size) for size in (1, 2, 3, 9)]
    assert gains[0] == 1
    assert gains == sorted(gains)
    assert (gains[-1] > gains[0]) == models.REGISTRY[name].packs


@pytest.mark.parametrize("model", ["block_diagonal", "factored", "rotation", "lstm", "rnn", "transformer"])
def test_small_models_are_packed_in_nines(model):
    assert pack_size(trial(model), num_available=9) == 9


@pytest.mark.parametrize("model", ["bilinear", "lstm"])
def test_large_models_run_alone_on_a_cpu(model):
    assert pack_size(trial(model, width=256), num_available=9) == 1


def test_packs_are_of_even_size():
    found = {available: pack_size(trial("rnn"), available) for available in (1, 2, 9, 10, 12, 19, 27)}
    assert found == {1: 1, 2: 2, 9: 9, 10: 5, 12: 6, 19: 7, 27: 9}


def test_the_users_limit_is_respected():
    assert pack_size(trial("rnn"), 9, largest=4) == 3
    assert pack_size(trial("rnn"), 9, largest=1) == 1


def test_a_pack_fits_in_memory():
    large = trial("transformer", width=256, layers=4)
    size = pack_size(large, 1000, device="cuda")
    assert 1 < size <= PACES["gpu"].largest_pack
    assert memory(large, size, "cuda") <= PACES["gpu"].memory < memory(large, size + 1, "cuda")
    assert pack_size(trial("bilinear", width=1024), 1000, device="cuda") == 1
    parameters = large.model.num_parameters(large.vocabulary)
    assert memory(large) > 4 * 7 * parameters, "weights, gradients, two moments, and the copy for a checkpoint"


def test_trials_that_would_round_differently_in_a_pack_run_alone_on_a_cpu():
    for unfit in (
        trial("rnn", width=10),
        trial("factored", rank=1),
        trial("rnn", width=20, batch_size=9),
        trial("rnn", width=20, train_examples=12, batch_size=8, min_inputs=10),
    ):
        assert not stacks_exactly(unfit)
        assert pack_size(unfit, 9) == 1
        assert pack_size(unfit, 9, device="cuda") == 9
    assert stacks_exactly(trial("rnn", width=64, train_examples=12, batch_size=8, min_inputs=10))


def test_a_kernel_that_the_user_chooses_decides_the_size(monkeypatch):
    wide = trial("rnn", width=128)
    sizes = {}
    for kernel in ("plain", "compiled"):
        monkeypatch.setenv("ORCH_KERNEL", kernel)
        sizes[kernel] = speedup(wide, 9)
    monkeypatch.delenv("ORCH_KERNEL")
    assert sizes["plain"] > 1.3 * sizes["compiled"], "a plain operation serves all trials of a pack"
    assert speedup(wide, 9) == sizes["compiled"], "the default at this width"


def test_packs_that_doctor_timed_decide_the_size():
    large = trial("bilinear", width=192)
    assert pack_size(large, 9) == 1
    assert pack_size(large, 9, doctor_times=DoctorTimes(((1, 2.0), (9, 1.0)))) == 9, "they gain twice what was computed"
    assert pack_size(trial("rnn"), 9, doctor_times=DoctorTimes(((1, 1.0), (9, 9.0)))) == 1, "they gain nothing"


def test_choosing_a_size_needs_no_torch():
    assert modules_imported("import orch.planning.pack_size", {"torch"}) == set()


def test_small_trials_of_every_model_that_packs_are_packed():
    in_turn = {"mamba"}  # its compiled step serves one trial after the other, and a pack gains nothing
    for name in models.REGISTRY:
        assert pack_size(small_trial(name), 9) == (9 if models.REGISTRY[name].packs and name not in in_turn else 1)
