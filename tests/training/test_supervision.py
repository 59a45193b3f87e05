"""Supervision: labels at the end, at every input, or at some; what is learned from them and what is reported."""

import dataclasses
import math

import pytest
import torch
from torch.nn.functional import cross_entropy

import orch
from orch.core.errors import InvalidSettings
from orch.models.kernel import COMPILED, PLAIN
from orch.store import SCHEMAS, trial_row
from orch.tasks.sampling import Sampler
from orch.training.checkpoints import parse_snapshot, snapshot_bytes
from orch.training.gradients import loss_and_gradients
from orch.training.train import Training, train
from tests.small import TYPICAL_MODELS, small_trial
from tests.tasks.test_from_function import walk
from tests.tasks.test_tasks import every_task
from tests.training.own_modules import Gated, Masked, trial_of
from tests.training.test_packs_across_cells import assert_same, assert_same_as_alone, finish


@every_task
def test_the_labels_of_every_beginning_equal_those_of_the_plain_fold(task):
    sampler = Sampler(task)
    drawn = sampler.draw(sampler.generator(0), 30, 2, 7)
    assert sampler.label(drawn, None) is drawn
    for interval in (1, 3, 9):
        labelled = sampler.label(drawn, interval)
        assert torch.equal(labelled.tokens_NT, drawn.tokens_NT)
        assert labelled.end_N.shape == labelled.target_N.shape == (30, 7 // interval + 1)
        for tokens, places, labels in zip(*(part.tolist() for part in labelled), strict=True):
            end = tokens.index(task.eoi)
            inputs = tokens[1:end]
            num_inputs = (len(inputs) - 1) // len(task.slots) + 1
            lengths = [task.num_symbols_for(count) for count in range(interval, num_inputs + 1, interval)]
            expected = {length: task.fold(inputs[:length]) for length in lengths} | {end: task.fold(inputs)}
            assert {place: label for place, label in zip(places, labels, strict=True) if label >= 0} == expected
            assert places[-1] == end


def test_a_task_of_a_function_has_labels_everywhere():
    sampler = Sampler(walk(size=8))
    tokens_NT, end_NP, label_NP = sampler.label(sampler.draw(sampler.generator(0), 8, 5, 5), 1)
    for tokens, places, labels in zip(tokens_NT.tolist(), end_NP.tolist(), label_NP.tolist(), strict=True):
        states = [1]
        for symbol in tokens[1:6]:
            states.append(walk.wrapped(states[-1], symbol, size=8))
        assert places == [1, 2, 3, 4, 5, 6]
        assert labels == [sampler.task.num_readable + state for state in [*states[1:], states[-1]]]


@pytest.mark.parametrize("supervision", ["every", "sparse:4"])
def test_loss_and_accuracies_are_those_of_a_plain_loop(supervision):
    training = Training([small_trial("rnn", supervision=supervision, init_seed=seed) for seed in (0, 1)])
    (sets,) = training._sets.values()
    tokens_NT, place_NP, target_NP = sets.validation
    logits_KNV = training.network.eval()(tokens_NT.expand(2, -1, -1), place_NP.expand(2, -1, -1)).detach()
    scores = training.validation_scores()
    for logits_NPV, score in zip(logits_KNV.view(2, *place_NP.shape, -1), scores, strict=True):
        losses, at_end, of_all = [], [], []
        for logits_PV, labels in zip(logits_NPV, target_NP.tolist(), strict=True):
            labelled = [(logits_V, label) for logits_V, label in zip(logits_PV, labels, strict=True) if label >= 0]
            each = [cross_entropy(logits_V, torch.tensor(label)).item() for logits_V, label in labelled]
            right = [logits_V.argmax().item() == label for logits_V, label in labelled]
            losses.append(sum(each) / len(each))
            at_end.append(right[-1])
            of_all.append(sum(right) / len(right))
        assert math.isclose(score.loss, sum(losses) / len(losses), rel_tol=1e-5)
        assert score.accuracy == sum(at_end) / len(at_end)
        assert score.accuracy_all is not None
        assert math.isclose(score.accuracy_all, sum(of_all) / len(of_all), rel_tol=1e-6)
    batch = training.next_batch()
    loss_K, _ = loss_and_gradients(training.network.train(), *batch)
    assert training.network.losses(training.network(*batch[:2]), batch[2]).mean(1).tolist() == loss_K.tolist()


def test_training_draws_the_same_sequences_under_any_supervision():
    final, every, sparse = (
        Training([small_trial("rnn", supervision=each)]).next_batch() for each in ("final", "every", "sparse:5")
    )
    for tokens, ends, targets in (every, sparse):
        assert torch.equal(tokens, final[0])
        assert torch.equal(ends[..., -1], final[1])
        assert torch.equal(targets[..., -1], final[2])


@pytest.mark.parametrize("model", TYPICAL_MODELS)
def test_a_trial_is_the_same_bit_for_bit_alone_in_a_pack_and_resumed(model):
    short = {"steps": 12, "eval_every": 6, "validation_samples": 40, "test_samples": 40, "stop_loss": 0.0}
    cells = (("modular_addition", 2), ("modular_addition", 11), ("dihedral", 4))
    trials = [
        small_trial(model, task, modulus=modulus, supervision="every", init_seed=seed, data_seed=seed, **short)
        for seed, (task, modulus) in enumerate(cells)
    ]
    together = assert_same_as_alone(trials)
    assert all(len(result.test_accuracy_all) == 2 for result in together.values())
    training = Training(trials)
    training.advance(stop_at=4)
    saved = [snapshot_bytes(training.snapshot(position)) for position in range(len(trials))]
    resumed = finish(Training.resume([parse_snapshot(each, "a checkpoint") for each in saved]))
    for trial_id, result in together.items():
        for name, tensor in result.parameters.items():
            assert torch.equal(resumed[trial_id].parameters[name], tensor), name
        assert resumed[trial_id].test_accuracy_all == result.test_accuracy_all


@orch.model
class GatedEverywhere(torch.nn.Module):
    """A gated recurrence with an answer at every position: many small operations, which a stack shares."""

    def __init__(self, vocabulary, width=16):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, 2 * width)
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, tokens):
        states = [torch.zeros(len(tokens), self.head.in_features)]
        for x in self.embedding(tokens).unbind(1):
            gate, value = x.chunk(2, dim=-1)
            states.append(torch.tanh(gate) * states[-1] + value)
        return self.head(torch.stack(states[1:], dim=1))


GatedEverywhere.revision = 1


def test_a_module_that_stacks_does_so_with_labels_everywhere():
    trial = trial_of(GatedEverywhere, supervision="every")
    shape = trial.batch_size, trial.task.num_tokens(trial.max_inputs)
    kind = trial.model.network()
    assert kind.stacking(trial.model, trial.vocabulary, shape, "cpu", 3, trial.label_shape).stacked


@pytest.mark.parametrize("model", [Masked, GatedEverywhere])
def test_a_module_of_ones_own_is_read_at_every_label(model):
    trials = [trial_of(model, supervision="every", init_seed=seed, data_seed=seed) for seed in (0, 1)]
    together = finish(Training(trials))
    for trial in trials:
        assert_same(together[trial.id], train(trial))


def test_a_module_that_answers_only_at_the_ends_is_told_what_to_return():
    with pytest.raises(InvalidSettings, match=r"only at the ends, .* return them at all positions, \(32, 12, 7\), or"):
        Training([trial_of(Gated, supervision="every")]).advance()


def test_a_trial_with_labels_everywhere_learns_and_its_row_says_how_far():
    trial = small_trial("bilinear", "group", group="S3", supervision="every", steps=300, eval_every=100)
    result = train(dataclasses.replace(trial, learning_rate=3e-3, curve_lengths=(5, 20)))
    assert result.validation_accuracy_all is not None
    assert min(result.validation_accuracy, result.validation_accuracy_all) > 0.95
    row = trial_row(result, {"attempt_id": "a"})
    assert set(row) <= set(SCHEMAS["trials"].names)
    assert (row["supervision"], row["ood_accuracy_all"]) == ("every", result.test_accuracy_all[40])
    assert [point["length"] for point in row["length_curve_all"]] == [5, 20, 40]
    assert row["horizon_90"] == max(length for length, found in result.test_accuracy.items() if found >= 0.9)
    final = trial_row(train(small_trial("rnn")), {"attempt_id": "a"})
    names = ("validation_accuracy_all", "ood_accuracy_all", "length_curve_all", "horizon_90")
    assert [final[name] for name in names] == [None] * 4


def test_final_leaves_the_id_as_it_was_and_others_have_their_own():
    final, every, sparse = (small_trial("rnn", supervision=each) for each in ("final", "every", "sparse:5"))
    assert final.id == small_trial("rnn").id
    assert len({final.id, every.id, sparse.id}) == 3
    assert final.packable() != every.packable()


@pytest.mark.parametrize("wrong", ["all", "sparse", "sparse:", "sparse:0", "sparse:-2", "sparse:05", "sparse:1"])
def test_an_unknown_supervision_is_refused(wrong):
    with pytest.raises(InvalidSettings, match=r"use (final, every, or sparse:k|every)"):
        small_trial("rnn", supervision=wrong)


def test_the_kernel_is_one_that_answers_at_every_label(monkeypatch):
    monkeypatch.delenv("ORCH_KERNEL", raising=False)
    for model, kernel in (("bilinear", PLAIN), ("delta_net", COMPILED), ("mamba", COMPILED)):
        assert small_trial(model, supervision="every").kernel_name("cpu") == kernel
    monkeypatch.setattr("orch.models.kernel.triton_found", lambda: True)
    assert small_trial("bilinear").kernel_name("cuda") == "triton"
    assert small_trial("bilinear", supervision="every").kernel_name("cuda") == PLAIN
