"""Our stacked transformer has the outputs, gradients and initial parameters of transformers' GPT-2."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import GPT2Config, GPT2LMHeadModel

from orch.models import Vocabulary
from orch.models.transformer.config import Config
from orch.models.transformer.network import Network

VOCABULARY = Vocabulary(size=11, readable=9)
NUM_SAMPLES, NUM_TOKENS = 7, 12


def reference(config: Config) -> GPT2LMHeadModel:
    settings = GPT2Config(
        vocab_size=VOCABULARY.size,
        n_positions=config.positions,
        n_embd=config.width,
        n_layer=config.layers,
        n_head=config.heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        use_cache=False,
        bos_token_id=None,
        eos_token_id=None,
    )
    return GPT2LMHeadModel(settings)


def perturbed(config: Config, seed: int) -> dict[str, Tensor]:
    """Return parameters without special values, such as the zeros and ones that many start from."""
    generator = torch.Generator().manual_seed(seed)
    fresh = Network.fresh(config, VOCABULARY, torch.Generator().manual_seed(seed))
    return {name: p + 0.1 * torch.randn(p.shape, generator=generator) for name, p in fresh.items()}


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_logits_and_gradients_of_every_stacked_trial_are_those_of_transformers(layers):
    config = Config(width=32, layers=layers, heads=2, positions=64)
    members = [perturbed(config, seed) for seed in (1, 2)]
    ours = Network(config, VOCABULARY, members)
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(VOCABULARY.readable, (2, NUM_SAMPLES, NUM_TOKENS), generator=generator)
    end = torch.randint(1, NUM_TOKENS, (2, NUM_SAMPLES), generator=generator)
    target = torch.randint(VOCABULARY.size, (2, NUM_SAMPLES), generator=generator)
    logits = ours(tokens, end)
    sum(cross_entropy(logits[trial], target[trial]) for trial in range(2)).backward()

    for trial, parameters in enumerate(members):
        theirs = reference(config)
        theirs.load_state_dict(parameters | {"lm_head.weight": parameters["transformer.wte.weight"]})
        expected = theirs(tokens[trial]).logits[torch.arange(NUM_SAMPLES), end[trial]]
        cross_entropy(expected, target[trial]).backward()
        torch.testing.assert_close(logits[trial], expected, rtol=1e-4, atol=1e-5)
        gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
        assert gradients.keys() == set(ours.names)
        for name in ours.names:
            torch.testing.assert_close(ours[name].grad[trial], gradients[name], rtol=1e-4, atol=1e-5)


def test_initial_parameters_are_those_that_transformers_draws():
    config = Config(width=32, layers=2, heads=2, positions=64)
    torch.manual_seed(3)
    expected = dict(reference(config).named_parameters())
    found = Network.fresh(config, VOCABULARY, torch.Generator().manual_seed(3))
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in found)
