"""Ordinary modules as models: the same numbers in a pack, alone, and interrupted; buffers, noise and shapes."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import orch
from orch.core.errors import InvalidSettings
from orch.models import Vocabulary
from orch.models.network import PerTrial
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.training.checkpoints import model_bytes, parse_model, parse_snapshot, snapshot_bytes
from orch.training.train import Training, train
from tests.training.own_modules import MODELS, Gated, Masked, Noisy, Normalised, Recurrent, Tied, trial_of

every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def pack(model: type[Any], **settings: Any) -> list[Any]:
    return [trial_of(model, init_seed=seed, data_seed=seed, **settings) for seed in (0, 1, 2)]


def finish(training: Training) -> dict[str, Any]:
    while not training.finished:
        training.advance()
    return {result.trial.id: result for result in training.results}


def assert_same(found: Any, expected: Any) -> None:
    assert found.parameters.keys() == expected.parameters.keys()
    for name, tensor in expected.parameters.items():
        assert torch.equal(found.parameters[name], tensor), name
    assert found.test_accuracy == expected.test_accuracy
    last, same = found.curve[-1], expected.curve[-1]
    assert (last.validation_loss, last.validation_accuracy) == (same.validation_loss, same.validation_accuracy)


def resumed_after(trials: list[Any], step: int) -> Training:
    """Train to a step, and continue from the checkpoints in a new training."""
    training = Training(trials)
    while training.step < step:
        training.advance(stop_at=step)
    saved = [snapshot_bytes(training.snapshot(position)) for position in range(len(trials))]
    definitions = trials[0].definitions
    return Training.resume([parse_snapshot(each, "a checkpoint", definitions) for each in saved])


@every_model
def test_a_module_trains_to_the_same_bits_in_a_pack_alone_and_resumed(model):
    trials = pack(model)
    together = finish(Training(trials))
    alone = train(trials[1])
    assert_same(together[trials[1].id], alone)
    for trial_id, result in finish(resumed_after(trials, 30)).items():
        assert_same(result, together[trial_id])
    assert_same(finish(resumed_after(trials[1:2], 30))[trials[1].id], alone)


def stacking_of(model: type[Any], **settings: Any) -> Any:
    trial = trial_of(model, **settings)
    shape = (trial.batch_size, trial.task.num_tokens(trial.max_inputs))
    kind = trial.model.network()
    assert issubclass(kind, PerTrial)
    return kind.stacking(trial.model, trial.vocabulary, shape, "cpu", 3)


def test_a_module_of_many_small_operations_is_stacked():
    assert stacking_of(Gated).stacked


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Noisy, "it draws random numbers, as in dropout, which differ between trials"),
        (Tied, "a stack of it saves no time: its operations are few or large"),
        (Recurrent, "torch.func.vmap cannot stack aten::lstm"),
    ],
)
def test_a_module_that_is_not_stacked_takes_turns_for_a_reason(model, reason):
    found = stacking_of(model)
    assert not found.stacked
    assert found.reason == reason


def looping(body: str) -> type[Any]:
    """Return the gated recurrence with another first line."""

    class Changed(Gated.wrapped):
        def forward(self, tokens, ends):
            exec(body, {"torch": torch, "self": self, "tokens": tokens, "nn": nn})
            return super().forward(tokens, ends)

    made = orch.model(Changed)
    made.revision = 1
    return made


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("nn.functional.dropout(self.embedding.weight, 0.5)", "it draws random numbers, as in dropout,"),
        ("float(self.embedding.weight.detach().sum())", "what it computes depends on the values of its tensors"),
    ],
)
def test_noise_and_values_read_back_keep_a_module_from_being_stacked(body, reason):
    assert stacking_of(looping(body)).reason.startswith(reason)


def test_a_stacked_trial_that_stops_early_leaves_the_others_as_they_were():
    trials = pack(Gated, steps=75)
    first = dataclasses.replace(trials[0], stop_loss=100.0)
    together = finish(Training([dataclasses.replace(trial, stop_loss=100.0) for trial in trials]))
    assert {result.steps for result in together.values()} == {25}
    assert_same(together[first.id], train(first))


def test_persistent_buffers_are_saved_and_others_are_rebuilt():
    trial = trial_of(Masked)
    result = train(trial)
    assert result.parameters["steps"].item() == 50
    assert result.parameters["scale"].item() != 1
    assert "mask" not in result.parameters
    network, _ = parse_model(model_bytes(result), "a model", trial.definitions)
    assert torch.equal(network["scale"][0], result.parameters["scale"])


def test_weights_saved_without_a_buffer_get_the_modules_own():
    trial = trial_of(Masked)
    result = train(trial)
    older = {name: tensor for name, tensor in result.parameters.items() if name != "scale"}
    network = trial.model.network()(trial.model, trial.vocabulary, [older])
    assert network["scale"].tolist() == [1.0]
    assert network["steps"].tolist() == [50]


def test_running_statistics_are_each_trials_own_and_evaluations_leave_them():
    training = Training(pack(Normalised))
    training.advance(stop_at=10)
    means = training.network["norm.running_mean"].clone()
    assert not torch.equal(means[0], means[1])
    assert training.network["norm.num_batches_tracked"].tolist() == [10, 10, 10]
    training.network.eval()
    tokens = torch.zeros(3, 4, 5, dtype=torch.int64)
    training.network(tokens, torch.full((3, 4), 4))
    assert torch.equal(training.network["norm.running_mean"], means)


def test_tied_weights_are_one_parameter_counted_once():
    shapes = Tied(width=8).shapes(Vocabulary(7, 7))
    assert shapes == {"embedding.weight": (7, 8), "mix.weight": (8, 8), "mix.bias": (8,)}
    assert Tied(width=8).num_parameters(Vocabulary(7, 7)) == 7 * 8 + 8 * 8 + 8
    assert Normalised(width=8).num_parameters(Vocabulary(7, 7)) == 2 * 7 * 8 + 7 + 2 * 8, "no running statistics"


def test_dropout_depends_on_the_trials_seeds_and_the_step_and_is_off_in_evaluation():
    training = Training(pack(Noisy))
    tokens, ends = torch.zeros(3, 8, 5, dtype=torch.int64), torch.full((3, 8), 4)
    first, again = training.network(tokens, ends), training.network(tokens, ends)
    assert torch.equal(first, again), "the same step draws the same numbers"
    training.advance(stop_at=1)
    network = training.network
    before = network(tokens, ends)
    training.step += 1
    assert not torch.equal(before, network(tokens, ends)), "another step draws others"
    network.eval()
    assert torch.equal(network(tokens, ends)[0, 0], network(tokens, ends)[0, 1])


def test_training_a_module_leaves_the_global_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    Training(pack(Noisy)).advance(stop_at=2)
    assert torch.equal(torch.rand(3), expected)


class Wrong(nn.Module):
    def __init__(self, vocabulary, width=8):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.size = vocabulary

    def forward(self, tokens):
        return self.embedding(tokens)


class Averaged(Wrong):
    def forward(self, tokens):
        return self.embedding(tokens).mean(1)[:, : self.size].repeat(1, 2)[:, : self.size]


class Several(Wrong):
    def forward(self, tokens, ends):
        return self.embedding(tokens), None


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Wrong, r"model wrong returns the shape \(32, 12, 8\): return logits of shape \(32, 12, 7\)"),
        (Averaged, r"returns the shape \(32, 7\): .*needs forward\(tokens, ends\), because samples are padded"),
        (Several, r"returns a tuple: return logits of shape \(32, 12, 7\).*, or \(32, 7\)"),
    ],
)
def test_a_wrong_output_is_named_with_the_expected_shape_and_the_line(module, message):
    made = orch.model(module)
    made.revision = 1
    with pytest.raises(InvalidSettings, match=message) as caught:
        Training([trial_of(made)]).advance(stop_at=1)
    line = module.forward.__code__.co_firstlineno
    assert str(caught.value).startswith(f"test_own_modules.py, line {line}: ")


class Configured(nn.Module):
    """Everything an argument can be. And a second sentence."""

    def __init__(self, vocabulary, width=8, rate: float = 1, deep: int | None = None, sizes=(1, 2), act=torch.tanh):
        super().__init__()
        self.head = nn.Embedding(vocabulary, vocabulary)
        self.given = (width, rate, deep, sizes, act)

    def forward(self, tokens):
        return self.head(tokens)


def test_plain_arguments_are_settings_and_others_keep_their_defaults():
    made = orch.model(Configured, title="All of it")
    assert (made.name, made.about) == ("configured", "Everything an argument can be. And a second sentence")
    assert (made.title, made.wrapped, made.__module__) == ("All of it", Configured, __name__)
    config = made(width=4, sizes=(3,))
    assert dataclasses.asdict(config) == {"width": 4, "rate": 1.0, "deep": None, "sizes": (3,)}
    assert config.make_module(5).given == (4, 1.0, None, (3,), torch.tanh)


def test_orch_model_is_also_a_decorator_with_facts():
    @orch.model(name="plain", about="a table", family="Tables")
    class Table(nn.Module):
        def __init__(self, vocabulary):
            super().__init__()
            self.table = nn.Embedding(vocabulary, vocabulary)

        def forward(self, tokens):
            return self.table(tokens)

    assert (Table.name, Table.about, Table.family) == ("plain", "a table", "Tables")
    assert Table(width=64) == Table(width=8), "a module without a width is one model at every scale"
    Table.revision = 1
    assert train(trial_of(Table, steps=5, eval_every=5)).steps == 5


def bad(signature: str) -> type[Any]:
    namespace: dict[str, Any] = {"nn": nn}
    exec(f"class Bad(nn.Module):\n    def __init__(self{signature}): pass", namespace)
    return namespace["Bad"]


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("", "Bad: its first argument must be the size of the vocabulary"),
        (", width=3", "Bad: its first argument must be the size of the vocabulary"),
        (", vocabulary, depth, heads", "its argument depth has no default: give it one\nBad: its argument heads"),
        (", vocabulary, slow=1", "its argument slow has the name of a fact that all models have: rename it"),
    ],
)
def test_a_class_that_cannot_be_a_model_is_named_with_the_remedy(signature, message):
    with pytest.raises(InvalidSettings, match=message):
        orch.model(bad(signature))


def test_what_is_no_module_or_no_fact_is_an_error():
    with pytest.raises(InvalidSettings, match=r"give it a class derived from torch\.nn\.Module"):
        orch.model(dict)
    with pytest.raises(orch.OrchError, match="there is no fact of a model 'titel': did you mean 'title'"):
        orch.model(Configured, titel="x")


def test_a_trial_of_a_module_is_identified_by_its_settings():
    definitions = Definitions({**BUILT_IN_DEFINITIONS.models, "tied": Tied}, BUILT_IN_DEFINITIONS.tasks)
    trial = trial_of(Tied, width=8)
    assert type(trial).from_dict(trial.to_dict(), definitions) == trial
    assert trial.id != trial_of(Tied, width=16).id


def test_the_module_in_the_documentation_trains():
    text = (Path(__file__).parents[2] / "docs" / "own_sweep.md").read_text()
    block = text.partition("```python\n")[2].partition("```")[0]
    namespace: dict[str, Any] = {"__name__": "documentation"}
    exec(block, namespace)
    made = namespace["RunningSums"]
    assert (made.name, made.about) == ("running_sums", "Running sums of embeddings")
    made.revision = 1
    assert train(trial_of(made, width=32, steps=5, eval_every=5)).steps == 5


@pytest.mark.parametrize("base", [Gated, Tied], ids=["stacked", "in turn"])
def test_a_parameter_that_the_settings_leave_unused_keeps_its_first_value(base):
    class Ablated(base.wrapped):
        """A module with a part that its forward does not use."""

        def __init__(self, vocabulary, width=16, extra=False):
            super().__init__(vocabulary, width)
            self.extra = nn.Linear(width, width)

    made = orch.model(Ablated)
    made.revision = 1
    assert stacking_of(made).stacked == (base is Gated)
    trials = pack(made)
    together = finish(Training(trials))
    alone = train(trials[1])
    assert_same(together[trials[1].id], alone)
    first = Training(trials[1:2]).network.member(0)
    assert torch.equal(alone.parameters["extra.weight"], first["extra.weight"])
    assert not torch.equal(alone.parameters["embedding.weight"], first["embedding.weight"])
