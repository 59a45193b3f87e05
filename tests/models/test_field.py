"""The field's recurrences against plain loops over tokens, in double precision and with the papers' equations."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from orch import models, tasks
from orch.models import Vocabulary
from orch.models.network import Network, build
from orch.models.recurrence.diagonal import diagonal_scan
from orch.models.recurrence.mlstm import mlstm
from orch.tasks.sampling import Sampler

TASK = tasks.REGISTRY["modular_addition"](modulus=5)
Parameters = dict[str, Tensor]
Mixer = Callable[[Any, Parameters, list[Tensor]], list[Tensor]]


def norm(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean() + 1e-5).sqrt() * weight


def norm_by_head(x: Tensor, heads: int, weight: Tensor) -> Tensor:
    return torch.cat([norm(part, scale) for part, scale in zip(x.chunk(heads), weight.chunk(heads), strict=True)])


def convolved(p: Parameters, us: list[Tensor]) -> list[Tensor]:
    weight = p["mixer.convolution"][:, 0]
    return [
        p["mixer.convolution_bias"]
        + sum(weight[:, -1 - lag] * past for lag, past in enumerate(us[t::-1][: weight.shape[1]]))
        for t in range(len(us))
    ]


def complex_of(x: Tensor) -> Tensor:
    """Return the complex vector, or matrix by rows, whose real parts come first."""
    return torch.complex(*x.chunk(2))


def lru(config: Any, p: Parameters, xs: list[Tensor]) -> list[Tensor]:
    eigenvalue = torch.exp(torch.complex(-p["mixer.log_decay"].exp(), p["mixer.log_phase"].exp()))
    assert eigenvalue.abs().min() >= config.smallest_modulus - 1e-6
    assert eigenvalue.abs().max() <= config.largest_modulus + 1e-6
    torch.testing.assert_close(p["mixer.log_scale"].exp(), (1 - eigenvalue.abs().square()).sqrt(), rtol=1e-4, atol=0)
    C = torch.complex(*p["mixer.output"].chunk(2, dim=1)).conj()
    state, out = torch.zeros_like(eigenvalue), []
    for x in xs:
        state = eigenvalue * state + p["mixer.log_scale"].exp() * (complex_of(p["mixer.input"]) @ x.to(state.dtype))
        out.append((C @ state).real + p["mixer.skip"] * x)
    return out


def rg_lru(config: Any, p: Parameters, xs: list[Tensor]) -> list[Tensor]:
    state, out = torch.zeros_like(xs[0]), []
    for x, u in zip(xs, convolved(p, [p["mixer.input"] @ x for x in xs]), strict=True):
        r, i = (
            torch.sigmoid(p[f"mixer.{name}_gate"] @ u + p[f"mixer.{name}_gate_bias"]) for name in ("decay", "input")
        )
        a = torch.sigmoid(p["mixer.decay"]) ** (8 * r)
        assert 0 < a.min() <= a.max() < 1
        state = a * state + (1 - a * a).sqrt() * i * u
        out.append(p["mixer.output"] @ (state * F.gelu(p["mixer.output_gate"] @ x)))
    return out


def unitary_diagonal(config: Any, p: Parameters, xs: list[Tensor]) -> list[Tensor]:
    C = torch.complex(*p["mixer.output"].chunk(2, dim=1)).conj()
    state, out = torch.zeros(config.width, dtype=torch.complex128), []
    for x in xs:
        factor = torch.exp(1j * (p["mixer.phase"] @ x + p["mixer.phase_bias"]))
        torch.testing.assert_close(factor.abs(), torch.ones_like(x))
        state = factor * state + complex_of(p["mixer.input"]) @ x.to(state.dtype)
        out.append((C @ state).real)
    return out


def matrix_memory(config: Any, p: Parameters, xs: list[Tensor]) -> list[Tensor]:
    """Without the stabiliser: numbers are small enough here."""
    a, d = config.heads, config.inner // config.heads
    C, n, out = [xs[0].new_zeros(d, d)] * a, [xs[0].new_zeros(d)] * a, []
    us = [p["mixer.up"] @ x for x in xs]
    for x, u, before in zip(xs, us, convolved(p, us), strict=True):
        c = F.silu(before)
        q, k, v = (p[f"mixer.{name}"] @ y for name, y in (("query", c), ("key", c / math.sqrt(d)), ("value", u)))
        log_i, f = (p["mixer.gates"] @ c + p["mixer.gates_bias"]).chunk(2)
        h = []
        for head in range(a):
            own = slice(head * d, head * d + d)
            i, keep = log_i[head].exp(), torch.sigmoid(f[head])
            C[head] = keep * C[head] + i * torch.outer(v[own], k[own])
            n[head] = keep * n[head] + i * k[own]
            h.append(C[head] @ q[own] / max((n[head] @ q[own]).abs(), 1))
        mixed = norm_by_head(torch.cat(h), a, p["mixer.output_norm"]) + p["mixer.skip"] * c
        out.append(p["mixer.output"] @ (mixed * F.silu(p["mixer.output_gate"] @ x)))
    return out


def scalar_memory(config: Any, p: Parameters, xs: list[Tensor]) -> list[Tensor]:
    """Without the stabiliser, and with the recurrent matrices written out."""
    c = n = h = torch.zeros_like(xs[0])
    heads, out = config.heads, []
    R = [torch.block_diag(*matrix.chunk(heads)) for matrix in p["mixer.recurrent"].chunk(4)]
    for x in xs:
        gates = (p["mixer.input"] @ x + p["mixer.bias"]).chunk(4)
        z, i, f, o = (gate + matrix @ h for gate, matrix in zip(gates, R, strict=True))
        c = torch.sigmoid(f) * c + i.exp() * z.tanh()
        n = torch.sigmoid(f) * n + i.exp()
        h = torch.sigmoid(o) * c / n
        out.append(norm_by_head(h, heads, p["mixer.output_norm"]))
    return out


MIXERS: dict[str, Mixer] = {
    "lru": lru,
    "rg_lru": rg_lru,
    "unitary_diagonal": unitary_diagonal,
    "mlstm": matrix_memory,
    "slstm": scalar_memory,
}


def of_blocks(mixer: Mixer, config: Any, p: Parameters, tokens: list[int]) -> Tensor:
    xs = [p["embedding"][token] for token in tokens]
    for layer in range(config.layers):
        own = {name.removeprefix(f"blocks.{layer}."): each for name, each in p.items()}
        added = mixer(config, own, [norm(x, own["mixer.norm"]) for x in xs])
        xs = [x + more for x, more in zip(xs, added, strict=True)]
        if config.mlp:
            normed = [norm(x, own["mlp.norm"]) for x in xs]
            inner = [F.silu(own["mlp.gate"] @ x) * (own["mlp.up"] @ x) for x in normed]
            xs = [x + own["mlp.down"] @ y for x, y in zip(xs, inner, strict=True)]
    return p["head.weight"] @ norm(xs[-1], p["norm"]) + p["head.bias"]


def sd_ssm(config: Any, p: Parameters, tokens: list[int]) -> Tensor:
    h = torch.zeros_like(p["norm.bias"])
    for token in tokens:
        x = p["embedding"][token]
        share = torch.softmax(p["selection"] @ x + p["selection_bias"], 0)
        A = sum(weight * matrix for weight, matrix in zip(share, p["dictionary"], strict=True))
        A = A / torch.linalg.vector_norm(A, config.norm_order, dim=0)
        h = A @ h + p["input"] @ x
    return p["head.weight"] @ F.layer_norm(h, h.shape, p["norm.weight"], p["norm.bias"]) + p["head.bias"]


def mi_rnn(config: Any, p: Parameters, tokens: list[int]) -> Tensor:
    h = torch.zeros_like(p["bias"])
    for token in tokens:
        x, u = p["input"] @ p["embedding"][token], p["recurrent"] @ h
        h = torch.tanh(p["product_scale"] * x * u + p["recurrent_scale"] * u + p["input_scale"] * x + p["bias"])
    return p["head.weight"] @ h + p["head.bias"]


def network_of(model: str, **settings: Any) -> Network:
    config = models.REGISTRY[model](**{"width": 8, **settings})
    return build(config, Vocabulary(TASK.vocabulary, TASK.num_readable), [torch.Generator().manual_seed(1)])


KINDS: list[tuple[str, dict[str, Any]]] = [
    *((model, {"layers": 2}) for model in MIXERS),
    ("slstm", {"heads": 1, "mlp": 0.0}),
    ("mlstm", {"heads": 1, "mlp": 1.5, "kernel_size": 2}),
    ("lru", {"smallest_modulus": 0.0, "largest_modulus": 0.5}),
    ("sd_ssm", {}),
    ("sd_ssm", {"matrices": 1, "norm_order": 1.0}),
    ("mi_rnn", {}),
]


@pytest.mark.parametrize(("model", "settings"), KINDS, ids=[f"{model} {settings}" for model, settings in KINDS])
def test_a_network_and_its_gradients_are_those_of_a_plain_loop_over_tokens(model, settings):
    network = network_of(model, **settings).double()
    sampler = Sampler(TASK)
    tokens_BT, end_B, _ = sampler.draw(sampler.generator("field"), 5, 1, 10)
    logits_BV = network(tokens_BT[None], end_B[None])[0]
    parameters = {name: network[name][0].detach().requires_grad_() for name in network.names}

    def answer(tokens: list[int]) -> Tensor:
        if model in MIXERS:
            return of_blocks(MIXERS[model], network.config, parameters, tokens)
        return {"sd_ssm": sd_ssm, "mi_rnn": mi_rnn}[model](network.config, parameters, tokens)

    expected_BV = torch.stack(
        [answer(tokens[: end + 1]) for tokens, end in zip(tokens_BT.tolist(), end_B.tolist(), strict=True)]
    )
    torch.testing.assert_close(logits_BV, expected_BV, rtol=1e-8, atol=1e-9)
    weight_BV = torch.randn(expected_BV.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = torch.autograd.grad((logits_BV * weight_BV).sum(), [network[name] for name in network.names])
    expected = torch.autograd.grad((expected_BV * weight_BV).sum(), list(parameters.values()))
    for name, ours, theirs in zip(network.names, found, expected, strict=True):
        torch.testing.assert_close(ours[0], theirs, rtol=1e-6, atol=1e-8, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("T", [1, 2, 3, 8, 13])
def test_a_doubling_scan_is_the_recurrence(T):
    generator = torch.Generator().manual_seed(T)
    a, b = (torch.randn(2, T, 3, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    h, expected = torch.zeros_like(b[:, 0]), []
    for t in range(T):
        h = a[:, t] * h + b[:, t]
        expected.append(h)
    torch.testing.assert_close(diagonal_scan(a, b), torch.stack(expected, dim=1))


@pytest.mark.parametrize("chunk", [1, 3, 64])
def test_the_matrix_memory_is_the_same_in_chunks_of_any_size_and_gates_of_any_size(chunk):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 10, 4, generator=generator, dtype=torch.float64) for _ in range(3))
    for size in (1.0, 30.0):
        log_i = size * torch.randn(2, 10, generator=generator, dtype=torch.float64)
        log_f = F.logsigmoid(size * torch.randn(2, 10, generator=generator, dtype=torch.float64))
        C, n, expected = torch.zeros(2, 4, 4).double(), torch.zeros(2, 4).double(), []
        for t in range(10):
            i, f = log_i[:, t].exp(), log_f[:, t].exp()
            C = f[:, None, None] * C + i[:, None, None] * v[:, t, :, None] * k[:, t, None]
            n = f[:, None] * n + i[:, None] * k[:, t]
            size_N = (n * q[:, t]).sum(1).abs().clamp(min=1)
            expected.append((C @ q[:, t, :, None])[..., 0] / size_N[:, None])
        torch.testing.assert_close(mlstm(q, k, v, log_i, log_f, chunk), torch.stack(expected, dim=1))


@pytest.mark.parametrize("model", ["mlstm", "slstm"])
def test_exponential_gates_do_not_overflow(model):
    network = network_of(model)
    with torch.no_grad():
        for name in network.names:
            if name.endswith(("mixer.bias", "mixer.gates_bias")):
                network[name].add_(200)  # e^200 is no number in single precision
    sampler = Sampler(TASK)
    tokens, end, _ = (each[None] for each in sampler.draw(sampler.generator("large"), 4, 40, 40))
    logits = network(tokens, end)
    assert logits.isfinite().all()
    for gradient in torch.autograd.grad(logits.sum(), list(network.parameters())):
        assert gradient.isfinite().all()


@pytest.mark.parametrize(
    ("model", "settings", "problem"),
    [
        ("lru", {"largest_modulus": 1.0}, "ring"),
        ("lru", {"smallest_modulus": 0.9, "largest_modulus": 0.5}, "ring"),
        ("lru", {"largest_phase": 0.0}, "largest_phase"),
        ("rg_lru", {"kernel_size": 0}, "kernel_size"),
        ("mlstm", {"heads": 3}, "heads"),
        ("mlstm", {"expansion": 0}, "expansion"),
        ("slstm", {"heads": 3}, "heads"),
        ("sd_ssm", {"matrices": 0}, "matrices"),
        ("sd_ssm", {"norm_order": 0.5}, "norm_order"),
    ],
)
def test_settings_that_are_no_model_are_named(model, settings, problem):
    assert any(problem in each for each in models.REGISTRY[model](**settings).problems())


@pytest.mark.parametrize(
    ("model", "mixer"),
    [
        ("lru", 3 * 64 + 4 * 64 * 64 + 64),
        ("rg_lru", 5 * 64 * 64 + 4 * 64 + 4 * 64),
        ("unitary_diagonal", 5 * 64 * 64 + 64),
        ("mlstm", 3 * 64 * 128 + 3 * 128 * 128 + 4 * 128 + 3 * 128 + 8 * 128 + 8),
        ("slstm", 4 * 64 * 64 + 4 * 64 + 4 * 64 * 16 + 64),
    ],
)
def test_parameters_of_a_block_are_those_of_the_equation(model, mixer):
    one, two = (models.REGISTRY[model](width=64, layers=layers) for layers in (1, 2))
    perceptron = 0 if model == "mlstm" else 64 + 3 * 64 * 128
    vocabulary = Vocabulary(7, 6)
    assert two.num_parameters(vocabulary) - one.num_parameters(vocabulary) == 64 + mixer + perceptron
