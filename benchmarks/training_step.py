"""One training step of the full bilinear model, compared with the paper's equation written out, on one core.

All take turns, after outputs and gradients were found equal:
- literal: `einsum("ijk,bk,bj->bi")` at every time step, with torch.optim.Adam by default;
- compiled: the same through torch.compile (where a C++ compiler is found);
- floor: the token table's three matmuls and Adam, with no recurrence at all;
- torch.nn.LSTM of the same width, for comparison.

Usage: python benchmarks/training_step.py [--quick]
"""

import sys
import time
from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy

from orch.models.network import build, per_trial_loss
from orch.sweeps.trial import Trial, make_trial
from orch.tasks.sampling import Sampler
from orch.training.adam import StackedAdam
from orch.training.data import training_data

WIDTH = 256


def literal_logits(weights: dict[str, torch.Tensor], tokens_BT: torch.Tensor, padding: int) -> torch.Tensor:
    """Evaluate Eq. 2 of the paper one position after another, with states normalised to RMS 1."""
    h_BH = weights["initial_state"].expand(len(tokens_BT), -1)
    for token_B in tokens_BT.unbind(1):
        x_BD = weights["embedding"][token_B.clamp(max=padding - 1)]
        new_BH = torch.einsum("ijk,bk,bj->bi", weights["recurrence.transition"], x_BD, h_BH)
        new_BH = new_BH / new_BH.square().mean(-1, keepdim=True).sqrt()
        h_BH = torch.where((token_B == padding)[:, None], h_BH, new_BH)
    return h_BH @ weights["head.weight"].T + weights["head.bias"]


class Literal:
    def __init__(self, trial: Trial, fused: bool, compiled: bool = False):
        network = build(trial.model, trial.vocabulary, [torch.Generator().manual_seed(0)])
        self.weights = {name: tensor.clone().requires_grad_() for name, tensor in network.member(0).items()}
        self.optimiser = torch.optim.Adam(self.weights.values(), lr=1e-4, fused=fused or None)
        self._logits = torch.compile(literal_logits, dynamic=False) if compiled else literal_logits
        self._padding = trial.vocabulary.readable

    def loss(self, tokens, end, target):
        return cross_entropy(self._logits(self.weights, tokens[0], self._padding), target[0])

    def step(self, batch):
        self.optimiser.zero_grad()
        self.loss(*batch).backward()
        self.optimiser.step()


class Ours:
    def __init__(self, trial: Trial):
        self.network = build(trial.model, trial.vocabulary, [torch.Generator().manual_seed(0)])
        self.network.reuse_gradient_memory()
        self.parameters = list(self.network.parameters())
        self.adam = StackedAdam(self.parameters, [1e-4])

    def loss(self, tokens, end, target):
        return per_trial_loss(self.network(tokens, end), target).mean()

    def step(self, batch):
        self.adam.update(torch.autograd.grad(self.loss(*batch), self.parameters))


class Floor:
    """The work that every implementation has to do: the table, its two gradients, and Adam."""

    def __init__(self, trial: Trial):
        readable = trial.vocabulary.readable
        self.weight, self.x = torch.randn(WIDTH * WIDTH, WIDTH), torch.randn(readable, WIDTH)
        self.g_table = torch.randn(readable, WIDTH * WIDTH)
        self.g_weight, self.table = torch.empty_like(self.weight), torch.empty_like(self.g_table)
        self.adam = StackedAdam([self.weight[None]], [1e-4])

    def step(self, batch):
        torch.mm(self.x, self.weight.T, out=self.table)
        torch.mm(self.g_table.T, self.x, out=self.g_weight)
        self.g_table @ self.weight
        self.adam.update([self.g_weight[None]])


class LSTM:
    def __init__(self, trial: Trial):
        self.embedding = torch.nn.Embedding(trial.vocabulary.readable + 1, WIDTH)
        self.lstm = torch.nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.head = torch.nn.Linear(WIDTH, trial.vocabulary.size)
        parameters = [*self.embedding.parameters(), *self.lstm.parameters(), *self.head.parameters()]
        self.optimiser = torch.optim.Adam(parameters, lr=1e-4, fused=True)

    def step(self, batch):
        tokens, end, target = (part[0] for part in batch)
        self.optimiser.zero_grad()
        hidden = self.lstm(self.embedding(tokens))[0][torch.arange(len(end)), end]
        cross_entropy(self.head(hidden), target).backward()
        self.optimiser.step()


def assert_equal(ours: Ours, literal: Literal, batch) -> None:
    loss, expected = ours.loss(*batch), literal.loss(*batch)
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-6)
    gradients = torch.autograd.grad(loss, ours.parameters)
    references = torch.autograd.grad(expected, list(literal.weights.values()))
    for name, found, reference in zip(literal.weights, gradients, references, strict=True):
        scale = reference.abs().max().item()
        assert (found[0] - reference).abs().max().item() <= 1e-3 * scale, f"the gradients of {name} differ"


def median_milliseconds(sides: dict[str, Callable], batches, repetitions: dict[str, int]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in sides}
    for step in sides.values():
        step(batches(0))
    for turn in range(max(repetitions.values())):
        for name, step in sides.items():
            if turn < repetitions[name]:
                started = time.perf_counter()
                step(batches(turn + 1))
                times[name].append((time.perf_counter() - started) * 1e3)
    return {name: sorted(values)[len(values) // 2] for name, values in times.items()}


def compare(modulus: int, quick: bool) -> None:
    trial = make_trial("modular_addition", "bilinear", modulus=modulus, width=WIDTH)
    batches = training_data([trial], Sampler(trial.task)).batch
    ours, literal = Ours(trial), Literal(trial, fused=False)
    assert_equal(ours, literal, batches(0))
    sides: dict[str, Callable] = {"ours": ours.step, "literal": literal.step}
    sides["literal, fused Adam"] = Literal(trial, fused=True).step
    sides |= {"floor": Floor(trial).step, "torch.nn.LSTM": LSTM(trial).step}
    if not quick:
        try:
            compiled = Literal(trial, fused=True, compiled=True)
            compiled.step(batches(0))
            sides["literal, compiled, fused Adam"] = compiled.step
        except Exception as error:  # no compiler: torch raises many kinds of error for it
            print(f"(torch.compile is left out: {type(error).__name__})")
    slow = 2 if quick else 5
    repetitions = {name: slow if name.startswith("literal") else 20 for name in sides}
    times = median_milliseconds(sides, batches, repetitions)
    print(f"\nvocabulary {trial.vocabulary.size}, width {WIDTH}, batch {trial.batch_size}, 2 to 10 inputs, one core")
    for name, milliseconds in times.items():
        print(f"  {name:32} {milliseconds:9.1f} ms   {milliseconds / times['ours']:6.2f} x ours")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for modulus in (5, 50):
        compare(modulus, quick="--quick" in sys.argv)
