"""Compiled kernels against their plain twins, and both against the floor: training step, validation and a test at 500.

One core. The two kernels take turns, and the fastest turn of each counts, in CPU time of the process, so that other
processes disturb little. The floor of a step is what no implementation can avoid on this core:
- arithmetic: the operations on positions that are not padding, at the rate of a large matrix product;
- Adam: torch's fused kernel on as many parameters;
- states: two passes that write them and two that read them, at the rate of a copy.

Usage: python benchmarks/kernels.py [--quick]
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import torch

from orch.models.compiled.matmul import product
from orch.models.kernel import COMPILED, PLAIN, VARIABLE
from orch.sweeps.trial import Trial, make_trial
from orch.training.adam import StackedAdam
from orch.training.evaluation import evaluate
from orch.training.train import Training

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "block diagonal (1)": ("block_diagonal", {"block_size": 1}),
    "block diagonal (2)": ("block_diagonal", {"block_size": 2}),
    "block diagonal (8)": ("block_diagonal", {"block_size": 8}),
    "block diagonal (64)": ("block_diagonal", {"block_size": 64}),
    "rotation": ("rotation", {}),
    "factored (256)": ("factored", {"rank": 256}),
    "rnn": ("rnn", {}),
    "lstm": ("lstm", {}),
    "bilinear": ("bilinear", {}),
    "mamba (1 layer)": ("mamba", {"layers": 1}),
}
WIDTHS = (64, 256)


def fastest(calls: list[Callable[[], object]], turns: int, repeats: int = 1) -> list[float]:
    """Return the shortest time of each call, in milliseconds. They take turns."""
    best = [float("inf")] * len(calls)
    for call in calls:
        call()
    for _ in range(turns):
        for place, call in enumerate(calls):
            started = time.process_time()
            for _ in range(repeats):
                call()
            best[place] = min(best[place], (time.process_time() - started) / repeats * 1e3)
    return best


class Core:
    """The rates of this core."""

    def __init__(self) -> None:
        square, large = torch.randn(1024, 1024), torch.randn(1 << 24)
        copy = torch.empty_like(large)
        product_ms, copy_ms = fastest([lambda: product(square, square), lambda: copy.copy_(large)], turns=10)
        self.flops_per_ms = 2 * 1024**3 / product_ms
        self.bytes_per_ms = 2 * large.nbytes / copy_ms

    def floor(self, trial: Trial, num_positions: int) -> tuple[float, float, float]:
        """Return the milliseconds of arithmetic, of Adam and of states."""
        model, vocabulary = trial.model, trial.vocabulary
        weight = torch.zeros(1, model.num_parameters(vocabulary))
        adam = StackedAdam([weight], [1e-4])
        (adam_ms,) = fastest([lambda: adam.update([weight])], turns=5, repeats=3)
        # Table and recurrence for these positions; the head is read at one position of each sample.
        operations = 3 * model.forward_flops(vocabulary, 1, num_positions)
        states = 4 * num_positions * model.width * 4
        return operations / self.flops_per_ms, adam_ms, states / self.bytes_per_ms


def open_training(trial: Trial, kernel: str) -> Training:
    os.environ[VARIABLE] = kernel
    return Training([trial])


def compare(name: str, width: int, core: Core, turns: int) -> None:
    model, settings = MODELS[name]
    trial = make_trial("modular_addition", model, modulus=5, width=width, **settings)
    trainings = [open_training(trial, kernel) for kernel in (PLAIN, COMPILED)]
    assert [training.kernel for training in trainings] == [PLAIN, COMPILED]
    slow = trial.model.num_parameters(trial.vocabulary) > 1e7
    plain, compiled = fastest([each._train_step for each in trainings], turns, repeats=2 if slow else 10)
    tokens, _, _ = trainings[0]._data.batch(0)
    floor = core.floor(trial, int((tokens < trial.vocabulary.readable).sum()))
    scores = []
    sets = trainings[0]._sets[trial.task]
    for batch, its_turns in ((sets.validation, turns), (sets.of_length(500), 2)):
        calls = [lambda network=each.network, batch=batch: evaluate(network, batch) for each in trainings]
        scores.append(fastest(calls, its_turns))
    step = f"{plain:9.2f}{compiled:10.2f}{plain / compiled:8.2f}x"
    parts = f"{sum(floor):8.2f} ({' + '.join(f'{part:.2f}' for part in floor)})"
    evaluations = "".join(f"{one:9.1f}{other:8.1f}{one / other:8.2f}x" for one, other in scores)
    print(f"{name:20}{step}{parts:>30}{evaluations}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    options = parser.parse_args()
    torch.set_num_threads(1)
    core = Core()
    print(f"one core: {core.flops_per_ms / 1e6:.0f} GFLOP/s, copies at {core.bytes_per_ms / 1e6:.0f} GB/s")
    for width in WIDTHS:
        print(f"\nwidth {width}, batch 64, 2 to 10 inputs, vocabulary 7; milliseconds of CPU time")
        heads = f"{'plain':>9}{'compiled':>10}{'ratio':>9}{'floor (arithmetic + Adam + states)':>36}"
        print(f"{'training step':20}{heads}   validation, ratio      500 inputs, ratio")
        for name in MODELS:
            compare(name, width, core, turns=5 if options.quick else 15)


if __name__ == "__main__":
    main()
