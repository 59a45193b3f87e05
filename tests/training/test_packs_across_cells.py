"""Packs of trials on different tasks and moduli: the very numbers that each trial gets alone."""

import dataclasses
from typing import Any

import pytest
import torch

from orch.core.errors import InvalidSettings
from orch.models.config import Vocabulary
from orch.models.vocabularies import Vocabularies, stack_padded
from orch.planning.across_cells import shared_program
from orch.sweeps.result import Result
from orch.sweeps.trial import Trial
from orch.training.checkpoints import parse_snapshot, snapshot_bytes
from orch.training.snapshot import Snapshot
from orch.training.train import Training
from tests.small import small_trial
from tests.training.test_packs import KINDS, every_kind_and_kernel

CELLS = (("modular_addition", 2), ("state_machine", 5), ("dihedral", 4), ("modular_addition", 11))
"""Four vocabularies; that of the dihedral group has tokens which are never read."""
LARGE_CELLS = (("modular_addition", 20), ("state_machine", 25))
"""More tokens than compiled kernels treat in one pass."""


def mixed(kind: str, cells: tuple[tuple[str, int], ...] = CELLS, **settings: Any) -> list[Trial]:
    short = {"steps": 120, "eval_every": 20, "validation_samples": 100, "test_samples": 100, "stop_loss": 1.2}
    return [
        small_trial(**KINDS[kind], task=task, modulus=modulus, **(short | settings), **own)
        for task, modulus in cells
        for own in ({"learning_rate": 1e-2}, {"learning_rate": 1e-3, "init_seed": 1, "data_seed": 1})
    ]


def finish(training: Training) -> dict[str, Result]:
    while not training.finished:
        training.advance()
    return {result.trial.id: result for result in training.results}


def assert_same(found: Result, expected: Result) -> None:
    assert found.trial == expected.trial
    assert found.parameters.keys() == expected.parameters.keys()
    for name, tensor in expected.parameters.items():
        assert torch.equal(found.parameters[name], tensor), name
    assert (found.steps, found.stop_reason) == (expected.steps, expected.stop_reason)
    assert (found.test_accuracy, found.majority) == (expected.test_accuracy, expected.majority)
    for point, same in zip(found.curve, expected.curve, strict=True):
        assert dataclasses.replace(point, seconds=0) == dataclasses.replace(same, seconds=0)


def assert_same_as_alone(trials: list[Trial]) -> dict[str, Result]:
    assert len({shared_program(trial, "cpu") for trial in trials}) == 1, "the planner would not pack these"
    together = finish(Training(trials))
    for trial in trials:
        assert_same(together[trial.id], finish(Training([trial]))[trial.id])
    return together


@pytest.mark.thorough
@every_kind_and_kernel
def test_a_trial_ends_bit_for_bit_the_same_alone_and_with_trials_on_other_tasks(kind, kernel, monkeypatch):
    monkeypatch.setenv("ORCH_KERNEL", kernel)
    found = assert_same_as_alone(mixed(kind))
    assert len({result.steps for result in found.values()}) > 1, "no trial left early"


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", ["plain", "compiled"])
@pytest.mark.parametrize("kind", ["block_diagonal", "bilinear", "rotation", "rnn", "factored"])
def test_large_vocabularies_keep_their_numbers_too(kind, kernel, monkeypatch):
    monkeypatch.setenv("ORCH_KERNEL", kernel)
    assert_same_as_alone(mixed(kind, LARGE_CELLS, steps=40, width=32))


def snapshots(training: Training) -> list[Snapshot]:
    """Return the snapshots of all trials, as they are read from checkpoints."""
    taken = (training.snapshot(position) for position in range(len(training.members)))
    return [parse_snapshot(snapshot_bytes(each), "a checkpoint") for each in taken]


@pytest.mark.parametrize("kernel", ["plain", "compiled"])
@pytest.mark.parametrize("model", ["block_diagonal", "rnn", "mamba", "transformer"])
def test_a_checkpoint_of_a_mixed_pack_goes_on_alone_and_those_of_trials_alone_in_a_mixed_pack(
    model, kernel, monkeypatch
):
    monkeypatch.setenv("ORCH_KERNEL", kernel)
    trials = mixed(model, CELLS[:3], steps=30, eval_every=10, stop_loss=1e-9)[::2]
    expected = {trial.id: finish(Training([trial]))[trial.id] for trial in trials}
    together, apart = Training(trials), [Training([trial]) for trial in trials]
    for training in (together, *apart):
        training.advance()
    of_pack = {each.trial: each for each in snapshots(together)}
    of_trials = [snapshot for training in apart for snapshot in snapshots(training)]
    for snapshot in of_trials:
        for state in ("parameters", "first", "second"):
            for name, tensor in getattr(snapshot, state).items():
                assert torch.equal(getattr(of_pack[snapshot.trial], state)[name], tensor), (state, name)
        shapes = {name: tuple(tensor.shape) for name, tensor in of_pack[snapshot.trial].parameters.items()}
        assert shapes == snapshot.trial.model.shapes(snapshot.trial.vocabulary)
    resumed_together = finish(Training.resume(of_trials))
    for trial in trials:
        (alone,) = finish(Training.resume([of_pack[trial]])).values()
        for result in (alone, resumed_together[trial.id]):
            for name, tensor in expected[trial.id].parameters.items():
                assert torch.equal(result.parameters[name], tensor), name
            assert result.test_accuracy == expected[trial.id].test_accuracy


@pytest.mark.parametrize("model", ["block_diagonal", "rnn", "mamba", "transformer"])
def test_tasks_with_more_tokens_per_input_can_share_a_stack_within_rounding(model):
    """As on a GPU: the planner leaves them apart on a CPU."""
    cells = (("modular_addition", 3), ("modular_arithmetic", 3))
    trials = [small_trial(model, task, modulus=modulus, steps=10) for task, modulus in cells]
    assert len({shared_program(trial, "cpu") for trial in trials}) == 2
    assert len({shared_program(trial, "cuda") for trial in trials}) == 1
    together = finish(Training(trials))
    for trial in trials:
        alone = finish(Training([trial]))[trial.id]
        for name, tensor in alone.parameters.items():
            torch.testing.assert_close(together[trial.id].parameters[name], tensor, rtol=1e-3, atol=1e-4)


def test_padding_is_zero_and_stays_so(monkeypatch):
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    training = Training(mixed("rnn", CELLS[:2], steps=30))
    training.advance(stop_at=10)
    sizes = [member.trial.vocabulary.size for member in training.members]
    assert sizes == sorted(sizes) == [4, 4, 7, 7]
    for stack in (
        *(training.network[name] for name in ("embedding", "head.weight", "head.bias")),
        *training._optimiser.first,
    ):
        if stack.shape[1] == 7:
            assert stack[0, 4:].abs().max() == 0
            assert stack[0, :4].abs().max() > 0


def test_logits_of_padding_take_no_part(monkeypatch):
    """Masked as on a GPU, or left out as on a CPU: the loss and its gradients agree, and padding has none."""
    vocabularies = Vocabularies([Vocabulary(3, 3), Vocabulary(5, 4)])
    h, weight = torch.randn(2, 6, 8), stack_padded([torch.randn(3, 8), torch.randn(5, 8)]).requires_grad_()

    def product(h_KBH: torch.Tensor, weight_KVH: torch.Tensor) -> torch.Tensor:
        return h_KBH @ weight_KVH.mT

    apart = vocabularies.logits(product, None, h, weight)
    monkeypatch.setattr("orch.models.vocabularies.on_host", lambda tensor: False)
    masked = vocabularies.logits(product, vocabularies.mask(), h, weight)
    torch.testing.assert_close(apart, masked)
    assert (masked[0, :, 3:] == -torch.inf).all()
    (gradient,) = torch.autograd.grad(masked.softmax(-1).square().sum(), weight)
    assert gradient[0, 3:].abs().max() == 0


def test_trials_of_a_model_that_does_not_cross_cells_do_not_share_a_stack(monkeypatch):
    trials = mixed("rnn", CELLS[:2])
    Training(trials)
    monkeypatch.setattr(type(trials[0].model), "packs_across_cells", False)
    with pytest.raises(InvalidSettings, match="may differ only in learning rate, seeds"):
        Training(trials)
