"""Packs: the very numbers that each trial gets alone, for a fraction of the operations."""

import dataclasses
from typing import Any

import pytest
import torch
from torch.profiler import profile

from orch import models
from orch.planning.pack_size import stacks_exactly
from orch.sweeps.trial import Trial
from orch.training.train import Training
from tests.small import TYPICAL_MODELS, small_trial

VARIANTS: dict[str, dict[str, Any]] = {
    "block_diagonal of size 1": {"model": "block_diagonal", "block_size": 1},
    "block_diagonal of size 8": {"model": "block_diagonal", "block_size": 8},
    "bilinear with additive terms": {"model": "bilinear", "additive": "input+constant"},
    "factored, multiplied out": {"model": "factored", "rank": 64},
    "lstm that orders its samples": {"model": "lstm", "width": 48},
    "block_diagonal on a fixed set": {"model": "block_diagonal", "train_examples": 80, "min_inputs": 10},
}
KINDS = {name: {"model": name} for name in TYPICAL_MODELS if models.REGISTRY[name].packs} | VARIANTS
every_kind = pytest.mark.parametrize("kind", KINDS)
every_kind_and_kernel = pytest.mark.parametrize(
    ("kind", "kernel"),
    [(kind, "plain") for kind in KINDS]
    + [(kind, "compiled") for kind in KINDS if small_trial(**KINDS[kind]).model.has_compiled],
)


def nine(kind: str, **settings: Any) -> list[Trial]:
    return [
        small_trial(**KINDS[kind], **settings, learning_rate=rate, init_seed=seed, data_seed=seed)
        for rate in (1e-3, 1e-4, 1e-5)
        for seed in (0, 1, 2)
    ]


def finish(trials: list[Trial]) -> dict[str, Any]:
    training = Training(trials)
    while not training.finished:
        training.advance()
    return {result.trial.id: result for result in training.results}


@pytest.mark.thorough
@every_kind_and_kernel
def test_a_trial_ends_bit_for_bit_the_same_alone_and_in_any_pack(kind, kernel, monkeypatch):
    monkeypatch.setenv("ORCH_KERNEL", kernel)
    trials = nine(kind, steps=200, eval_every=100, validation_samples=300, test_samples=300)
    assert all(stacks_exactly(trial) for trial in trials)
    together, apart = finish(trials), finish(trials[1:5])
    alone = finish(trials[:1]) | finish(trials[4:5])
    for packed in (together, apart):
        for trial_id in packed.keys() & alone.keys():
            found, expected = packed[trial_id], alone[trial_id]
            for name, tensor in expected.parameters.items():
                assert torch.equal(found.parameters[name], tensor), name
            assert found.test_accuracy == expected.test_accuracy
            for point, same in zip(found.curve, expected.curve, strict=True):
                assert dataclasses.replace(point, seconds=0) == dataclasses.replace(same, seconds=0)
    assert together.keys() & alone.keys() == alone.keys()
    for trial_id in together.keys() & apart.keys():
        for name, tensor in apart[trial_id].parameters.items():
            assert torch.equal(together[trial_id].parameters[name], tensor), name


@pytest.mark.parametrize("width", [16, 64, 256])
def test_a_samples_product_does_not_depend_on_how_many_are_multiplied_with_it(width):
    """Packs rely on this wherever stacked trials read different numbers of samples."""
    samples = torch.randn(1, 64, width, generator=torch.Generator().manual_seed(0))
    weights = torch.randn(1, width, 4 * width, generator=torch.Generator().manual_seed(1))
    whole = torch.bmm(samples, weights)
    for count in range(8, 64, 8):
        for stacked in (1, 9):
            part = torch.bmm(samples[:, :count].repeat(stacked, 1, 1), weights.repeat(stacked, 1, 1))
            assert torch.equal(part[-1], whole[0, :count])


NOT_LAUNCHED = {
    *(
        "alias",
        "as_strided",
        "chunk",
        "detach",
        "empty",
        "empty_like",
        "empty_strided",
        "expand",
        "expand_as",
        "flatten",
    ),
    *("narrow", "new_empty", "permute", "reshape", "resize_", "resolve_conj", "resolve_neg", "result_type", "select"),
    *("slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unflatten", "unsqueeze", "view"),
    *("_reshape_alias", "_unsafe_view", "mT", "reshape_as", "view_as"),
    # Fused Adam reads its step from each tensor on a CPU. On a GPU one kernel takes all tensors.
    *("_local_scalar_dense", "item"),
}
"""They make a view, get memory or read a number that the host has: nothing runs on a device."""


def num_launches(trials: list[Trial]) -> int:
    """Return the operators of one training step that compute something and are not made of others that do."""
    training = Training(trials)
    training.advance(stop_at=2)  # what is drawn once per block of steps, is drawn
    with profile(acc_events=True) as profiler:
        training.advance(stop_at=3)

    def computes(event: Any) -> bool:
        kind, _, name = event.name.partition("::")
        return (kind == "aten" and name not in NOT_LAUNCHED) or any(map(computes, event.cpu_children))

    return sum(computes(event) and not any(map(computes, event.cpu_children)) for event in profiler.events())


# Mamba's own scan goes through the trials one by one on a CPU, so that their states stay in the cache.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "mamba"])
def test_a_pack_of_nine_needs_at_most_a_sixth_of_the_launches_of_nine_solo_runs(kind, monkeypatch):
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    trials = nine(kind)
    alone = num_launches(trials[:1])
    assert alone > 100
    assert num_launches(trials) <= 9 * alone / 6


@pytest.mark.parametrize("model", ["rnn", "transformer"])
def test_scores_do_not_depend_on_how_a_set_is_parted(model, monkeypatch):
    training = Training([small_trial(model, validation_samples=100, init_seed=seed) for seed in (0, 1)])
    whole = training.validation_scores()
    monkeypatch.setattr("orch.training.evaluation._STATES_IN_CACHE", 2 * 64)
    monkeypatch.setattr("orch.training.evaluation._TOKENS_IN_CACHE", 12 * 64)
    assert training.validation_scores() == whole


def test_trials_that_leave_together_are_tested_on_sets_drawn_once(monkeypatch):
    training = Training(nine("rnn", steps=10))
    asked = []
    (sets,) = training._sets.values()
    draw = sets.of_length
    monkeypatch.setattr(sets, "of_length", lambda length: asked.append(length) or draw(length))
    training.advance()
    assert training.finished
    assert len(training.results) == 9
    assert asked == [10, 40]
