"""Compiled kernels against their plain twins, and both against the floor: training step, validation and a test at 500.

One core. The two kernels take turns, and the fastest turn of each counts, in CPU time of the process, so that other
processes disturb little. The floor of a step is what no implementation can avoid on this core: arithmetic, Adam and
states, as `orch.running.doctor.floor` defines them and `orch doctor` shows them.

Usage: python benchmarks/kernels.py [--quick]
"""

import argparse
import os
from typing import Any

import torch

from orch.models.kernel import COMPILED, PLAIN, VARIABLE
from orch.running.doctor.floor import DeviceRates, fastest
from orch.sweeps.trial import Trial, make_trial
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


def open_training(trial: Trial, kernel: str) -> Training:
    os.environ[VARIABLE] = kernel
    return Training([trial])


def compare(name: str, width: int, core: DeviceRates, turns: int) -> None:
    model, settings = MODELS[name]
    trial = make_trial("modular_addition", model, modulus=5, width=width, **settings)
    trainings = [open_training(trial, kernel) for kernel in (PLAIN, COMPILED)]
    assert [training.kernel for training in trainings] == [PLAIN, trial.model.compiled_kernel]
    slow = trial.model.num_parameters(trial.vocabulary) > 1e7
    steps = [each._train_step for each in trainings]
    plain, compiled = (1e3 * each for each in fastest(steps, turns, repeats=2 if slow else 10))
    tokens, _, _ = trainings[0]._data.batch(0)
    least = core.floor(trial, 1, int((tokens < trial.vocabulary.readable).sum()))
    floor = [1e3 * part for part in (least.arithmetic, least.adam, least.states)]
    scores = []
    sets = trainings[0]._sets[trial.task]
    for batch, its_turns in ((sets.validation, turns), (sets.of_length(500), 2)):
        calls = [lambda network=each.network, batch=batch: evaluate(network, batch) for each in trainings]
        scores.append([1e3 * each for each in fastest(calls, its_turns)])
    step = f"{plain:9.2f}{compiled:10.2f}{plain / compiled:8.2f}x"
    parts = f"{sum(floor):8.2f} ({' + '.join(f'{part:.2f}' for part in floor)})"
    evaluations = "".join(f"{one:9.1f}{other:8.1f}{one / other:8.2f}x" for one, other in scores)
    print(f"{name:20}{step}{parts:>30}{evaluations}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    options = parser.parse_args()
    torch.set_num_threads(1)
    core = DeviceRates()
    print(f"one core: {core.flops_per_second / 1e9:.0f} GFLOP/s, copies at {core.bytes_per_second / 1e9:.0f} GB/s")
    for width in WIDTHS:
        print(f"\nwidth {width}, batch 64, 2 to 10 inputs, vocabulary 7; milliseconds of CPU time")
        heads = f"{'plain':>9}{'compiled':>10}{'ratio':>9}{'floor (arithmetic + Adam + states)':>36}"
        print(f"{'training step':20}{heads}   validation, ratio      500 inputs, ratio")
        for name in MODELS:
            compare(name, width, core, turns=5 if options.quick else 15)


if __name__ == "__main__":
    main()
