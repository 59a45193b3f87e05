"""The contract of every model. A model added to the registry is tested here without being named."""

import dataclasses

import pytest
import torch

from orch import models, tasks
from orch.models import Vocabulary
from orch.models.network import build
from orch.tasks.sampling import Sampler
from tests.small import MODELS, small_settings

every_model = pytest.mark.parametrize("name", MODELS)


def make(name: str, task, seeds=(0,), **settings):
    config = models.REGISTRY[name](**(small_settings(name) | settings))
    vocabulary = Vocabulary(task.vocabulary, task.num_readable)
    return build(config, vocabulary, [torch.Generator().manual_seed(seed) for seed in seeds])


def draw(task, num_trials=1, num_samples=6):
    sampler = Sampler(task)
    drawn = [sampler.draw(sampler.generator(trial), num_samples, 2, 10) for trial in range(num_trials)]
    return torch.stack([batch.tokens_NT for batch in drawn]), torch.stack([batch.end_N for batch in drawn])


@pytest.mark.parametrize("task_name", sorted(tasks.REGISTRY))
@every_model
def test_logits_have_one_entry_per_trial_sample_and_token(name, task_name):
    task = tasks.REGISTRY[task_name].at_modulus(3)
    network = make(name, task, seeds=(0, 1))
    tokens, end = draw(task, num_trials=2)
    logits = network(tokens, end)
    assert logits.shape == (2, 6, task.vocabulary)
    assert logits.isfinite().all()


@every_model
def test_the_config_counts_the_parameters_the_network_has(name):
    task = tasks.REGISTRY["dihedral"](modulus=4)
    network = make(name, task)
    vocabulary = Vocabulary(task.vocabulary, task.num_readable)
    assert {key: tuple(tensor.shape) for key, tensor in network.member(0).items()} == network.config.shapes(vocabulary)
    assert sum(parameter.numel() for parameter in network.parameters()) == network.config.num_parameters(vocabulary)
    assert network.config.forward_flops(vocabulary, 64, 12) > 0


@every_model
def test_tokens_after_the_end_of_input_do_not_matter(name):
    task = tasks.REGISTRY["modular_addition"](modulus=5)
    network = make(name, task).eval()
    tokens, end = draw(task)
    longer = torch.nn.functional.pad(tokens, (0, 7), value=task.num_readable)
    torch.testing.assert_close(network(longer, end), network(tokens, end), rtol=1e-4, atol=1e-6)


@every_model
def test_every_input_matters(name):
    task = tasks.REGISTRY["modular_addition"](modulus=5)
    network = make(name, task).eval()
    tokens, end = draw(task, num_samples=32)
    before = network(tokens, end)
    changed = tokens.clone()
    changed[:, :, 1] = (changed[:, :, 1] + 1) % 5
    assert ((network(changed, end) - before).abs().amax(-1) > 0).all()


@every_model
def test_the_seed_decides_the_initial_parameters(name):
    task = tasks.REGISTRY["modular_addition"](modulus=5)
    state = torch.get_rng_state()
    one, same, other = (make(name, task, seeds=(seed,)).member(0) for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), state), "the global generator must not be touched"
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert any(not torch.equal(one[key], other[key]) for key in one)


@every_model
def test_a_trial_computes_the_same_alone_and_in_a_stack(name):
    task = tasks.REGISTRY["modular_addition"](modulus=5)
    tokens, end = draw(task, num_trials=3)
    stack = make(name, task, seeds=(0, 1, 2))
    stacked = stack(tokens, end)
    weight = torch.randn(stacked.shape, generator=torch.Generator().manual_seed(0))
    gradients = torch.autograd.grad((stacked * weight).sum(), list(stack.parameters()))
    for trial in range(3):
        part = slice(trial, trial + 1)
        alone = make(name, task, seeds=(trial,))
        logits = alone(tokens[part], end[part])
        assert torch.equal(logits[0], stacked[trial])
        for found, expected in zip(
            torch.autograd.grad((logits * weight[part]).sum(), list(alone.parameters())), gradients, strict=True
        ):
            assert torch.equal(found[0], expected[trial])


@every_model
def test_a_models_name_is_its_folder(name):
    config = models.REGISTRY[name]
    assert config.name == name
    assert config.__module__ == f"orch.models.{name}.config"
    assert isinstance(config.revision, int)


def test_titles_match_the_published_tables():
    title = {name: config.title_of for name, config in models.REGISTRY.items()}
    assert (title["bilinear"](), title["lstm"](), title["block_diagonal"]()) == ("Bilinear", "LSTM", "Block-diagonal")
    assert (title["block_diagonal"]("1"), title["block_diagonal"]("64")) == ("Block 1 (real diagonal)", "Block 64")
    assert (title["mamba"]("1"), title["transformer"]("4")) == ("Mamba (1 layer)", "Transformer (4 layers)")
    assert title["factored"]("700") == "Factored (rank 700)"


def test_a_model_that_defines_only_a_name_has_a_default_title_and_no_look():
    class Config(models.ModelConfig):
        name = "gated_diagonal"

    assert (Config.title_of(), Config.title_of("wide")) == ("Gated diagonal", "Gated diagonal (wide)")
    assert Config.look_of() is None
    assert (Config().table_variant, Config().kernel_name("cpu"), Config.family) == ("", "plain", "Other models")


@every_model
def test_no_two_settings_of_a_model_share_a_label(name):
    usual = models.REGISTRY[name]()
    labels = {usual.full_summary}
    for field in dataclasses.fields(usual):
        if field.name == "width":
            continue
        value = getattr(usual, field.name)
        other = not value if isinstance(value, bool) else f"{value}-final" if isinstance(value, str) else value + 1
        labels.add(dataclasses.replace(usual, **{field.name: other}).full_summary)
    assert len(labels) == len(dataclasses.fields(usual))


def test_a_label_says_what_differs_from_the_defaults():
    delta_product = models.REGISTRY["delta_product"]
    assert delta_product().full_summary == "2 reflections, 1 layer, eigenvalues in [0, 1]"
    changed = delta_product(householders=1, heads=2, mlp=0.0, gated=True, negative_eigenvalues=True)
    assert changed.full_summary == "1 reflection, 1 layer, eigenvalues in [-1, 1], mlp 0.0, heads 2, gated yes"
