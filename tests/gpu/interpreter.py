"""Kernels of Triton on CPU tensors, run by its interpreter and compared with their plain twins.

Runs in a process of its own, because TRITON_INTERPRET=1 has to be set before a kernel is defined: see `process.py`.
"""

from typing import Any
from unittest import mock

import torch
from torch import Tensor
from triton.runtime import interpreter

from orch import models
from orch.models.config import ModelConfig
from orch.models.gpu_kernels import scan
from orch.models.gpu_kernels.token_groups import group_by_token
from orch.models.kernel import TRITON
from orch.models.network import Network, build, per_trial_loss
from orch.models.token_table import OuterProducts, written_out
from orch.models.vocabularies import Vocabularies
from orch.tasks import REGISTRY
from orch.tasks.sampling import Sampler
from orch.training import train
from orch.training.adam import StackedAdam, StackedAdamW
from orch.training.capture import NUM_WARM_UP_STEPS
from orch.training.schedules import Schedule
from orch.training.stacked_optimiser import TrialRecipe
from orch.training.train import Training
from tests.gpu.process import serve
from tests.small import small_trial
from tests.training.no_recorder import TheStepItself
from tests.training.operations import Operations, trace

_patch_tensor = interpreter._patch_lang_tensor


def _patch_with_loops(tensor: Any, scope: Any) -> None:
    """Let a number given at a launch bound a loop, which triton 3.6 cannot do with numpy 2.4."""
    _patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())


interpreter._patch_lang_tensor = _patch_with_loops


def compare(
    model: str,
    settings: dict[str, Any],
    num_trials: int = 1,
    modulus: int = 2,
    num_samples: int = 4,
    longest: int = 3,
    state_size: float = 1.0,
    precision: str = "float64",
    kernel_precision: str = "float32",
    corrupt: bool = False,
) -> dict[str, float]:
    """Return by how much a network's loss and gradients differ from those of its plain twin.

    Differences are relative to the largest entry. The twin computes with `precision`, and the kernels with
    `kernel_precision`. `state_size` multiplies h_0. `corrupt` changes one weight of the twin a little, to see that a
    difference shows.
    """
    task = REGISTRY["modular_addition"](modulus=modulus)
    tokens, end, target = draw(task, num_trials, num_samples, longest)
    network = make(model, settings, task, num_trials).to(getattr(torch, kernel_precision))
    with torch.no_grad():
        if "initial_state" in network.names:
            network["initial_state"].mul_(state_size)
    twin = make(model, settings, task, num_trials).to(getattr(torch, precision))
    twin.load_state_dict(network.state_dict())
    if corrupt:
        with torch.no_grad():
            twin[twin.names[2]][0, 0] += 0.01
    network.kernel = TRITON
    (found_loss, found), (expected_loss, expected) = (of(each, tokens, end, target) for each in (network, twin))
    with torch.no_grad():
        logits, logits_of_twin = network.eval()(tokens, end), twin.eval()(tokens, end)
    differences = {"loss": difference(found_loss, expected_loss), "logits": difference(logits, logits_of_twin)}
    return differences | {name: difference(found[name], expected[name]) for name in expected}


def compare_across_cells(model: str, settings: dict[str, Any], moduli: tuple[int, ...] = (2, 5)) -> float:
    """Return by how much losses in a pack of several vocabularies differ from those of the plain twin alone.

    The pack pads vocabularies and masks their logits, as on a GPU.
    """
    alone, batches, members, vocabularies = [], [], [], []
    trials = [REGISTRY["modular_addition"](modulus=modulus) for modulus in moduli]
    padding = max(task.num_readable for task in trials)
    for task in trials:
        network = make(model, settings, task, 1)
        tokens, end, target = draw(task, 1, 4, 3)
        alone.append(of(network, tokens, end, target)[0])
        batches.append((tokens.masked_fill(tokens == task.num_readable, padding), end, target))
        members.append(network.member(0))
        vocabularies.append(models.Vocabulary(task.vocabulary, task.num_readable))
    pack = type(network)(network.config, vocabularies, members)
    pack.kernel = TRITON
    with mock.patch.object(Vocabularies, "_separate", return_value=False):
        tokens, end, target = (torch.cat(parts) for parts in zip(*batches, strict=True))
        losses = pack.losses(pack(tokens, end), target).mean(1)
    return difference(losses.detach(), torch.cat(alone))


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


def compare_adam(shape: list[int], num_tokens: int, num_updates: int = 3, recipe: bool = False) -> dict[str, float]:
    """Return by how much Adam on a gradient that is not written out differs from Adam on the gradient.

    With a `recipe` it is AdamW, with clipped gradients and a schedule.
    """
    generator = torch.Generator().manual_seed(0)
    *_, width = shape
    # Small, so that the changes are not lost in the rounding of the weights.
    weight, rates = 0.01 * torch.randn(2, *shape, generator=generator), [1e-2, 1e-3]
    embedding = torch.randn(2, num_tokens + 2, width, generator=generator)
    found, expected = weight.clone(), weight.double()
    kind = StackedAdamW if recipe else StackedAdam
    recipes = [TrialRecipe(Schedule("cosine", 2, 5), 0.1, size) for size in (1.0, 2.0)] if recipe else None
    ours, plain = kind([found], rates, kernel=TRITON, recipes=recipes), kind([expected], rates, recipes=recipes)
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


def compare_groups(num_samples: int, num_tokens: int, num_readable: int) -> dict[str, list[Any]]:
    """Return the positions of a batch in the order of their tokens, as the kernel and as Python find them."""
    generator = torch.Generator().manual_seed(0)
    tokens_KBT = torch.randint(0, num_readable + 1, (2, num_samples, num_tokens), generator=generator)
    groups = group_by_token(tokens_KBT, num_readable)
    orders, starts = [], []
    for tokens_BT in tokens_KBT:
        tokens_TB = tokens_BT.T.tolist()
        places = {(t, r): [] for r in range(num_readable) for t in range(num_tokens)}
        for t, row in enumerate(tokens_TB):
            for s, token in enumerate(row):
                if token < num_readable:
                    places[t, token].append(t * num_samples + s)
        order: list[int] = []
        start = []
        for r in range(num_readable):
            start.append([])
            for t in range(num_tokens):
                start[r].append(len(order))
                order += places[t, r]
            start[r].append(len(order))
        orders.append(order)
        starts.append(start)
    found = [row[: len(order)].tolist() for row, order in zip(groups.order_KP, orders, strict=True)]
    return {
        "order": found, "expected_order": orders, "start": groups.start_KRT.tolist(), "expected_start": starts,
    }  # fmt: skip


def compare_replayed_steps(model: str) -> dict[str, Any]:
    """Train a few steps one operation at a time, and again with a step that is recorded and replayed."""
    sizes = {"width": 4, "batch_size": 3, "validation_samples": 2, "max_inputs": 2, "modulus": 2}
    trials = [small_trial(model, init_seed=seed, learning_rate=1e-3 * (seed + 1), **sizes) for seed in range(2)]
    last = NUM_WARM_UP_STEPS + 2

    def run(recorder: Any) -> Training:
        with mock.patch.object(train, "find_recorder", return_value=recorder):
            training = Training(trials)
            training.advance(stop_at=last)
        return training

    with (
        mock.patch.object(ModelConfig, "kernel_name", return_value=TRITON),
        mock.patch.object(train, "_kernel_to_go_on_with", return_value=TRITON),
        mock.patch.object(scan, "LARGEST_BLOCK", 3),  # so that a width of 4 is a large block
    ):
        ordinary, replayed = run(None), run(recorder := Operations())
        traced = run(TheStepItself())
        first, second = (trace(traced._train_step) for _ in range(2))
    pairs = [(ordinary.snapshot(trial), replayed.snapshot(trial)) for trial in range(2)]
    different = [
        f"{kind} {name}"
        for one, other in pairs
        for kind in ("parameters", "first", "second")
        for name, tensor in getattr(one, kind).items()
        if not torch.equal(tensor, getattr(other, kind)[name])
    ]
    return {
        "kernel": replayed.kernel,
        "num_recorded": recorder.num_recorded,
        "different": different,
        "same_operations": first == second,
        "operations": sorted({operation.partition(".")[0] for operation in first}),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(globals())
