"""The fast recurrences give the states and gradients of the equations, evaluated one sample and one step at a time."""

import math

import pytest
import torch

from orch.models.recurrence import (
    Normalisation,
    batch_positions,
    block_scan,
    blocks,
    elman_scan,
    factored_scan,
    lstm_scan,
    token_lookup,
)
from orch.models.recurrence.blocks import ElementwiseBlocks
from orch.models.recurrence.factored import FactoredTransition
from orch.models.recurrence.large_blocks import GatheredBlocks, GroupedBlocks, SummedBlocks
from orch.models.recurrence.scan import scan
from orch.tasks import REGISTRY
from orch.tasks.sampling import Sampler

K, B = 3, 12
TASK = REGISTRY["modular_addition"](modulus=5)
R = TASK.num_readable

BLOCKS = [(1, 8), (2, 4), (8, 2), (16, 1), (16, 2)]
TRANSITIONS = [ElementwiseBlocks, SummedBlocks, GroupedBlocks, GatheredBlocks]


@pytest.fixture(autouse=True)
def _in_double_precision():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def drawn():
    sampler = Sampler(TASK)
    return torch.stack([sampler.draw(sampler.generator(trial), B, 2, 10).tokens_NT for trial in range(K)])


@pytest.fixture(params=["as on the host", "as on a GPU"])
def _both_kinds_of_device(request, monkeypatch):
    """Run a test twice, the second time with the code paths of a GPU, on the CPU."""
    if request.param == "as on a GPU":
        for module in (blocks, batch_positions, token_lookup):
            monkeypatch.setattr(module, "on_host", lambda tensor: False)


def normalise(u, kind, block_size):
    blocks = u.view(block_size, -1)
    if kind == "block":
        return (blocks / blocks.norm(dim=0)).flatten()
    if kind == "none":
        return u
    return u / u.norm() * (math.sqrt(len(u)) if kind == "rms" else 1)


def by_the_equations(table, tokens, h0, additive, kind, block_size):
    finals = []
    for trial, sequences in enumerate(tokens.tolist()):
        for sequence in sequences:
            h = h0[trial]
            for token in sequence:
                if token == R:
                    break
                h = torch.einsum("ijn,jn->in", table[trial, token], h.view(block_size, -1)).flatten()
                if additive is not None:
                    h = h + additive[trial, token]
                h = normalise(h, kind, block_size)
            finals.append(h)
    return torch.stack(finals).view(K, B, -1)


def assert_equal_with_gradients(found, expected, inputs):
    weight = torch.randn_like(expected)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9 * expected.abs().max().item())
    found_gradients = torch.autograd.grad((found * weight).sum(), inputs)
    expected_gradients = torch.autograd.grad((expected * weight).sum(), inputs, retain_graph=True)
    for one, other in zip(found_gradients, expected_gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8 * other.abs().max().item())


@pytest.mark.thorough
@pytest.mark.parametrize("with_additive", [False, True])
@pytest.mark.parametrize("kind", ["none", "unit", "rms", "block"])
@pytest.mark.parametrize(("block_size", "num_blocks"), BLOCKS)
@pytest.mark.usefixtures("_both_kinds_of_device")
def test_every_block_transition_gives_the_states_and_gradients_of_the_equations(
    block_size, num_blocks, kind, with_additive, drawn
):
    if kind == "block" and block_size == 1:
        kind = "none"
    width = block_size * num_blocks
    table = torch.randn(K, R, block_size, block_size, num_blocks, requires_grad=True)
    h0 = torch.randn(K, width, requires_grad=True)
    additive = torch.randn(K, R, width, requires_grad=True) if with_additive else None
    inputs = [table, h0, *([additive] if with_additive else [])]
    expected = by_the_equations(table, drawn, h0, additive, kind, block_size)
    for transition in TRANSITIONS:
        found = block_scan(table, drawn, h0, Normalisation(kind, block_size), additive, transition)
        assert_equal_with_gradients(found, expected, inputs)
        with torch.no_grad():
            without_gradient = block_scan(table, drawn, h0, Normalisation(kind, block_size), additive, transition)
        assert torch.equal(without_gradient, found)


@pytest.mark.usefixtures("_both_kinds_of_device")
@pytest.mark.parametrize("kind", ["none", "rms"])
def test_factored_states_and_gradients_are_those_of_the_multiplied_out_table(kind, drawn):
    width, factors = 8, 12
    out, into = (torch.randn(K, width, factors, requires_grad=True) for _ in range(2))
    gate = torch.randn(K, R, factors, requires_grad=True)
    h0 = torch.randn(K, width, requires_grad=True)
    table = torch.einsum("kif,krf,kjf->krij", out, gate, into)[..., None]
    normalisation = Normalisation(kind, width)
    expected = by_the_equations(table, drawn, h0, None, kind, width)
    through_factors = scan(FactoredTransition, normalisation, drawn, h0, None, out, gate, into)
    either = factored_scan(out, gate, into, drawn, h0, normalisation)
    for found in (through_factors, either):
        assert_equal_with_gradients(found, expected, [out, gate, into, h0])


def test_factored_multiplies_out_where_that_is_cheaper(monkeypatch, drawn):
    chosen = []
    monkeypatch.setattr("orch.models.recurrence.factored.block_scan", lambda *args, **options: chosen.append("table"))
    monkeypatch.setattr("orch.models.recurrence.factored.scan", lambda *args, **options: chosen.append("factors"))
    h0, normalisation = torch.randn(K, 8), Normalisation("rms", 8)
    for factors in (2, 64):
        out, gate = torch.randn(K, 8, factors), torch.randn(K, R, factors)
        factored_scan(out, gate, out, drawn, h0, normalisation)
    assert chosen == ["factors", "table"]


@pytest.mark.usefixtures("_both_kinds_of_device")
@pytest.mark.parametrize("worth_ordering", [0, 1 << 20])
@pytest.mark.parametrize(("layer", "fast", "gates"), [(torch.nn.RNN, elman_scan, 1), (torch.nn.LSTM, lstm_scan, 4)])
def test_nonlinear_states_and_gradients_are_those_of_torch_nn(layer, fast, gates, worth_ordering, drawn, monkeypatch):
    monkeypatch.setattr(batch_positions, "_WORTH_ORDERING", worth_ordering)
    width = 6
    inputs = torch.randn(K, R, gates * width, requires_grad=True)
    hidden = torch.randn(K, gates * width, width, requires_grad=True)
    reference = layer(gates * width, width, batch_first=True, bias=False)
    expected = []
    for trial in range(K):
        weights = {"weight_ih_l0": torch.eye(gates * width), "weight_hh_l0": hidden[trial]}
        outputs, _ = torch.func.functional_call(reference, weights, (inputs[trial][drawn[trial].clamp(max=R - 1)],))
        end = (drawn[trial] == TASK.eoi).int().argmax(1)
        expected.append(outputs[torch.arange(B), end])
    found = fast(inputs, hidden, drawn)
    assert_equal_with_gradients(found, torch.stack(expected), [inputs, hidden])
    with torch.no_grad():
        assert torch.equal(fast(inputs, hidden, drawn), found)


@pytest.mark.parametrize("kind", ["unit", "rms", "block"])
def test_normalising_after_the_last_step_has_the_gradient_autograd_gives(kind):
    normalisation = Normalisation(kind, 4)
    u = torch.randn(2, 5, 12, requires_grad=True)
    expected, scale = normalisation.forward(u.detach())
    torch.testing.assert_close(normalisation(u), expected)
    g = torch.randn_like(u)
    (found,) = torch.autograd.grad((normalisation(u) * g).sum(), u)
    torch.testing.assert_close(normalisation.backward(g, expected, scale, torch.empty_like(g)), found)


@pytest.mark.parametrize("layer", ["blocks", "factors", "elman", "lstm"])
def test_gradients_can_be_taken_twice(layer, drawn):
    width, normalisation = 8, Normalisation("rms", 2)
    h0, table = torch.randn(K, width), torch.randn(K, R, 2, 2, 4, requires_grad=True)
    gate, out = torch.randn(K, R, 2, requires_grad=True), torch.randn(K, width, 2)
    inputs, hidden = torch.randn(K, R, 4 * width, requires_grad=True), torch.randn(K, 4 * width, width)
    made, final = {
        "blocks": lambda: (table, block_scan(table, drawn, h0, normalisation)),
        "factors": lambda: (gate, factored_scan(out, gate, out, drawn, h0, normalisation)),
        "elman": lambda: (inputs, elman_scan(inputs, torch.randn(K, 4 * width, 4 * width), drawn)),
        "lstm": lambda: (inputs, lstm_scan(inputs, hidden, drawn)),
    }[layer]()
    once, again = (torch.autograd.grad(final.sum(), made, retain_graph=True)[0] for _ in range(2))
    torch.testing.assert_close(once, again)
