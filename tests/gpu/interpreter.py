"""Kernels of Triton on CPU tensors, run by its interpreter and compared with their plain twins.

Runs in a process of its own, because TRITON_INTERPRET=1 has to be set before a kernel is defined: see `process.py`.
"""

from typing import Any

import torch
from torch import Tensor
from triton.runtime import interpreter

from orch import models
from orch.models.kernel import TRITON
from orch.models.network import Network, build
from orch.models.token_table import OuterProducts, written_out
from orch.tasks import REGISTRY
from orch.tasks.sampling import Sampler
from orch.training.adam import StackedAdam
from orch.training.evaluation import per_trial_loss
from tests.gpu.process import serve

_patch_tensor = interpreter._patch_lang_tensor


def _patch_with_loops(tensor: Any, scope: Any) -> None:
    """Let a number given at a launch bound a loop, which triton 3.6 cannot do with numpy 2.4."""
    _patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())


interpreter._patch_lang_tensor = _patch_with_loops


def compare(
    model: str,
    settings: dict[str, Any],
    num_trials: int = 3,
    modulus: int = 5,
    num_samples: int = 7,
    longest: int = 6,
    state_size: float = 1.0,
    precision: str = "float64",
    kernel_precision: str = "float32",
) -> dict[str, float]:
    """Return by how much a network's loss and gradients differ from those of its plain twin.

    Differences are relative to the largest entry. The twin computes with `precision`, and the kernels with
    `kernel_precision`. `state_size` multiplies h_0.
    """
    task = REGISTRY["modular_addition"](modulus=modulus)
    tokens, end, target = draw(task, num_trials, num_samples, longest)
    network = make(model, settings, task, num_trials).to(getattr(torch, kernel_precision))
    with torch.no_grad():
        if "initial_state" in network.names:
            network["initial_state"].mul_(state_size)
    twin = make(model, settings, task, num_trials).to(getattr(torch, precision))
    twin.load_state_dict(network.state_dict())
    network.kernel = TRITON
    (found_loss, found), (expected_loss, expected) = (of(each, tokens, end, target) for each in (network, twin))
    with torch.no_grad():
        logits, logits_of_twin = network.eval()(tokens, end), twin.eval()(tokens, end)
    differences = {"loss": difference(found_loss, expected_loss), "logits": difference(logits, logits_of_twin)}
    return differences | {name: difference(found[name], expected[name]) for name in expected}


def make(model: str, settings: dict[str, Any], task: Any, num_trials: int) -> Network:
    vocabulary = models.Vocabulary(task.vocabulary, task.num_readable)
    generators = [torch.Generator().manual_seed(seed) for seed in range(num_trials)]
    return build(models.REGISTRY[model](**settings), vocabulary, generators)


def draw(task: Any, num_trials: int, num_samples: int, longest: int) -> list[Tensor]:
    """Draw sequences of different lengths, so that there is padding."""
    sampler = Sampler(task)
    batches = [sampler.draw(sampler.generator(trial), num_samples, 1, longest) for trial in range(num_trials)]
    tokens, end, target = (torch.stack(parts) for parts in zip(*batches, strict=True))
    assert (tokens == task.num_readable).any()
    # Time comes first in memory, as in a recorded step.
    return [tokens.permute(2, 0, 1).contiguous().permute(1, 2, 0), end, target]


def of(network: Network, tokens: Tensor, end: Tensor, target: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    trained = {name: network[name] for name in network.trained_names}
    loss = per_trial_loss(network(tokens, end), target).mean(1)
    gradients = map(written_out, network.gradients(loss.sum(), trained))
    return loss.detach(), {name: g.view_as(trained[name]) for name, g in zip(trained, gradients, strict=True)}


def difference(found: Tensor, expected: Tensor) -> float:
    largest = expected.abs().max().item()
    assert expected.isfinite().all()
    return (found.to(expected.dtype) - expected).abs().max().item() / max(largest, 1e-30)


def compare_adam(shape: list[int], num_tokens: int, num_updates: int = 3) -> dict[str, float]:
    """Return by how much Adam on a gradient that is not written out differs from Adam on the gradient."""
    generator = torch.Generator().manual_seed(0)
    *_, width = shape
    # Small, so that the changes are not lost in the rounding of the weights.
    weight, rates = 0.01 * torch.randn(2, *shape, generator=generator), [1e-2, 1e-3]
    embedding = torch.randn(2, num_tokens + 2, width, generator=generator)
    found, expected = weight.clone(), weight.double()
    ours, plain = StackedAdam([found], rates, TRITON), StackedAdam([expected], rates)
    for _ in range(num_updates):
        g_KRO = torch.randn(2, num_tokens, weight[0].numel() // width, generator=generator)
        products = OuterProducts(g_KRO, embedding[:, :num_tokens])
        ours.update([products])
        written = OuterProducts(products.g_KRO.double(), products.x_KRD.double()).written_out()
        plain.update([written.view_as(weight)])
    pairs = {
        "change": (found - weight, expected - weight),
        "first": (ours.first[0], plain.first[0]),
        "second": (ours.second[0], plain.second[0]),
    }
    return {name: difference(*pair) for name, pair in pairs.items()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(globals())
