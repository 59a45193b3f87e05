"""The delta rule: its chunked and compiled forms against the equation, and what its transitions can be."""

import importlib.util
import math
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from orch import models, tasks
from orch.models import Vocabulary
from orch.models.kernel import COMPILED, COMPILED_2
from orch.models.network import Network, build, per_trial_loss
from orch.models.recurrence.delta_rule import delta_rule, delta_rule_by_step
from orch.tasks.sampling import Sampler

TASK = tasks.REGISTRY["modular_addition"](modulus=5)
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "DeltaNet": ("delta_net", {}),
    "DeltaNet of two layers": ("delta_net", {"layers": 2, "negative_eigenvalues": True, "heads": 2}),
    "without convolution": ("delta_net", {"kernel_size": 0, "mlp": 0.0, "heads": 1}),
    "Gated DeltaNet": ("gated_delta_net", {"layers": 2, "negative_eigenvalues": True, "heads": 2}),
    "DeltaProduct": ("delta_product", {"negative_eigenvalues": True, "heads": 2, "householders": 3}),
    "Gated DeltaProduct": ("delta_product", {"layers": 2, "gated": True, "heads": 2}),
    "a head of 16 components": ("delta_net", {"width": 16, "heads": 1}),
}
every_variant = pytest.mark.parametrize("variant", VARIANTS)


def drawn(N: int, T: int, n: int, d: int, decays: bool) -> list[Tensor | None]:
    generator = torch.Generator().manual_seed(N + T + n + d)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    q, k = (F.normalize(normal(N, count, d), dim=-1) for count in (T, n * T))
    parts = [q, k, normal(N, n * T, d), 2 * torch.sigmoid(normal(N, n * T))]
    return [each.requires_grad_() for each in parts] + [(-normal(N, n * T).exp()).requires_grad_() if decays else None]


def with_matrices(q, k, v, beta, log_decay) -> Tensor:
    """The equation with every matrix written out, for one sequence after the other."""
    (N, T, d), per_token, outputs = q.shape, k.shape[1] // q.shape[1], []
    for sequence in range(N):
        state, read = q.new_zeros(d, d), []
        for write in range(T * per_token):
            key, value, strength = k[sequence, write], v[sequence, write], beta[sequence, write]
            alpha = 1 if log_decay is None else log_decay[sequence, write].exp()
            transition = alpha * (torch.eye(d, dtype=q.dtype) - strength * torch.outer(key, key))
            state = state @ transition + strength * torch.outer(value, key)
            if write % per_token == per_token - 1:
                read.append(state @ q[sequence, write // per_token])
        outputs.append(torch.stack(read))
    return torch.stack(outputs)


@pytest.mark.parametrize("decays", [False, True])
@pytest.mark.parametrize(("N", "T", "n", "d"), [(1, 1, 1, 1), (3, 7, 1, 4), (2, 5, 3, 5), (1, 20, 2, 3)])
def test_the_chunked_form_has_the_outputs_and_gradients_of_the_recurrence(N, T, n, d, decays):
    inputs = drawn(N, T, n, d, decays)
    expected = with_matrices(*inputs)
    weight = torch.randn(expected.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    given = [each for each in inputs if each is not None]
    gradients = torch.autograd.grad((expected * weight).sum(), given)
    forms = [delta_rule_by_step, *(lambda *x, chunk=chunk: delta_rule(*x, chunk=chunk) for chunk in (1, 3, 4, 64))]
    for form in forms:
        found = form(*inputs)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)
        for ours, theirs in zip(torch.autograd.grad((found * weight).sum(), given), gradients, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10)


def test_a_state_that_vanishes_within_a_chunk_has_finite_gradients():
    inputs = drawn(2, 9, 1, 3, decays=True)
    strong = [*inputs[:4], torch.full((2, 9), -500.0, dtype=torch.float64, requires_grad=True)]
    for gradient in torch.autograd.grad(delta_rule(*strong).sum(), strong):
        assert gradient.isfinite().all()
    torch.testing.assert_close(delta_rule(*strong), with_matrices(*strong))


def network_of(variant: str, num_trials: int = 1) -> Network:
    model, settings = VARIANTS[variant]
    config = models.REGISTRY[model](**{"width": 8, **settings})
    vocabulary = Vocabulary(TASK.vocabulary, TASK.num_readable)
    return build(config, vocabulary, [torch.Generator().manual_seed(seed) for seed in range(num_trials)])


def batch(num_trials: int = 1, num_samples: int = 6) -> list[Tensor]:
    sampler = Sampler(TASK)
    parts = [sampler.draw(sampler.generator(trial), num_samples, 1, 10) for trial in range(num_trials)]
    return [torch.stack(each) for each in zip(*parts, strict=True)]


def norm(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean() + 1e-5).sqrt() * weight


def answer(config: Any, p: dict[str, Tensor], tokens: list[int]) -> Tensor:
    """Logits of one sample, read token by token with plain vectors and matrices."""
    H, a, n, d, J = config.width, config.heads, config.num_writes, config.width // config.heads, config.kernel_size
    xs = [p["embedding"][token] for token in tokens]
    for layer in range(config.layers):
        own = {name.removeprefix(f"blocks.{layer}."): each for name, each in p.items()}
        states = [xs[0].new_zeros(d, d) for _ in range(a)]
        projected, after = [], []
        for x in xs:
            normed = norm(x, own["mixer.norm"])
            projected.append(own["mixer.projection"] @ normed)
            mixed = projected[-1]
            if J:
                taps = [
                    own["mixer.convolution"][:, 0, J - 1 - lag] * past for lag, past in enumerate(projected[::-1][:J])
                ]
                mixed = sum(taps)
            mixed = F.silu(mixed)
            beta = (2 if config.negative_eigenvalues else 1) * torch.sigmoid(own["mixer.beta"] @ normed)
            read = []
            for head in range(a):
                if config.is_gated:
                    step = F.softplus((own["mixer.decay"] @ normed + own["mixer.decay_bias"])[head])
                    states[head] = states[head] * torch.exp(-own["mixer.decay_rate"][head].exp() * step)
                for write in range(n):
                    first = H + write * H + head * d
                    key, value = mixed[first : first + d], mixed[first + n * H : first + n * H + d]
                    key, strength = key / key.norm(), beta[write * a + head]
                    reflection = torch.eye(d, dtype=x.dtype) - strength * torch.outer(key, key)
                    eigenvalues = torch.linalg.eigvalsh(reflection)
                    assert eigenvalues.min() >= (-1 if config.negative_eigenvalues else 0)
                    assert eigenvalues.max() <= 1 + 1e-12
                    states[head] = states[head] @ reflection + strength * torch.outer(value, key)
                query = mixed[head * d : head * d + d]
                read.append(norm(states[head] @ (query / query.norm()), own["mixer.output_norm"]))
            o = torch.cat(read)
            if config.is_gated:
                o = o * F.silu(own["mixer.output_gate"] @ normed)
            x = x + own["mixer.output"] @ o
            if config.mlp:
                normed = norm(x, own["mlp.norm"])
                x = x + own["mlp.down"] @ (F.silu(own["mlp.gate"] @ normed) * (own["mlp.up"] @ normed))
            after.append(x)
        xs = after
    return p["head.weight"] @ norm(xs[-1], p["norm"]) + p["head.bias"]


@every_variant
def test_the_network_is_that_of_a_plain_loop_over_tokens_whose_transitions_have_the_stated_eigenvalues(variant):
    network = network_of(variant).double()
    tokens_KBT, end_KB, _ = batch()
    logits = network(tokens_KBT, end_KB)[0]
    for sample, found in enumerate(logits):
        tokens = tokens_KBT[0, sample, : end_KB[0, sample] + 1].tolist()
        torch.testing.assert_close(found, answer(network.config, network.member(0), tokens), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kernel", [COMPILED, COMPILED_2])
@every_variant
def test_the_compiled_kernel_has_the_losses_and_gradients_of_its_plain_twin(variant, kernel):
    network = network_of(variant, num_trials=2)
    tokens, end, target = batch(num_trials=2, num_samples=21)
    loss = per_trial_loss(network(tokens, end), target).mean(1)
    expected = torch.autograd.grad(loss.sum(), [network[name] for name in network.names])
    network.kernel = kernel
    found_loss, found = network.compiled_gradients(tokens, target)
    torch.testing.assert_close(found_loss, loss, rtol=1e-5, atol=1e-6)
    for name, gradient in zip(network.names, expected, strict=True):
        worst = (found[name] - gradient).abs().max().item()
        assert worst <= 5e-5 * gradient.abs().max().item() + 1e-7, f"{name} differs by {worst}"


@every_variant
def test_a_compiled_step_of_a_pack_has_the_bits_of_each_trial_alone(variant):
    network = network_of(variant, num_trials=3)
    tokens, _, target = batch(num_trials=3, num_samples=21)
    network.kernel = COMPILED_2
    loss, gradients = network.compiled_gradients(tokens, target)
    for trial in range(3):
        alone = type(network)(network.config, network.vocabulary, [network.member(trial)])
        alone.kernel = COMPILED_2
        own_loss, own = alone.compiled_gradients(tokens[trial : trial + 1], target[trial : trial + 1])
        assert torch.equal(own_loss[0], loss[trial])
        for name in network.names:
            assert torch.equal(own[name][0], gradients[name][trial]), name


def test_long_sequences_are_left_to_the_chunked_form():
    network = network_of("Gated DeltaProduct")
    sampler = Sampler(TASK)
    tokens, end, _ = (each[None] for each in sampler.draw(sampler.generator("long"), 3, 150, 150))
    plain = network(tokens, end)
    network.kernel = COMPILED
    assert torch.equal(network(tokens, end), plain)


@pytest.mark.parametrize(
    ("model", "settings", "extra"),
    [
        ("delta_net", {}, 0),
        ("gated_delta_net", {}, 4 * 64 + 4 + 4 + 64 * 64),
        ("delta_product", {"householders": 3}, 2 * (2 * 64 * 64 + 2 * 64 * 4 + 4 * 64)),
    ],
)
def test_parameters_are_those_of_the_equation(model, settings, extra):
    config = models.REGISTRY[model](width=64, **settings)
    mixer = 64 + 3 * 64 * 64 + 3 * 64 * 4 + 4 * 64 + 16 + 64 * 64 + extra
    perceptron = 64 + 3 * 64 * 128
    assert config.num_parameters(Vocabulary(7, 6)) == 7 * 64 + mixer + perceptron + 64 + 7 * 64 + 7


@pytest.mark.parametrize(
    ("model", "settings", "problem"),
    [
        ("delta_net", {"heads": 3}, "heads"),
        ("delta_net", {"heads": 0}, "heads"),
        ("delta_net", {"kernel_size": -1}, "kernel_size"),
        ("delta_net", {"mlp": -1.0}, "mlp"),
        ("delta_net", {"mlp": math.nan}, "mlp"),
        ("delta_product", {"householders": 0}, "householders"),
    ],
)
def test_settings_that_are_no_model_are_named(model, settings, problem):
    (found,) = models.REGISTRY[model](**settings).problems()
    assert problem in found


def test_the_plain_reference_of_flash_linear_attention_agrees():
    """Their file is loaded by its path where the package is installed: the package itself needs a GPU's compiler."""
    package = importlib.util.find_spec("fla")
    if package is None or not package.submodule_search_locations:
        pytest.skip("flash-linear-attention is not installed (pip install --no-deps fla-core)")
    path = Path(package.submodule_search_locations[0]) / "ops" / "gated_delta_product" / "naive.py"
    reference = runpy.run_path(str(path))["naive_recurrent_gated_delta_product"]
    for n, decays in ((1, False), (1, True), (3, True)):
        q, k, v, beta, log_decay = (None if each is None else each.detach() for each in drawn(3, 9, n, 4, decays))
        if log_decay is not None:
            log_decay = F.pad(log_decay[:, ::n, None], (0, n - 1)).flatten(1)  # only before a token's first write
        theirs, _ = reference(
            *(each.transpose(0, 1)[None].float() for each in (q, k, v)),
            g=None if log_decay is None else log_decay[:, ::n].T[None].float(),
            beta=beta.T[None].float(),
            scale=1,
            num_householder=n,
        )
        found = delta_rule(q, k, v, beta, log_decay).float()
        torch.testing.assert_close(found, theirs[0].transpose(0, 1), rtol=1e-4, atol=1e-5)
