"""Gain from packs: trials per minute in packs of 1, 3 and 9, for every model that packs, on one core, in one run.

A trial is a shortened one of the laptop scale (width 64) or the paper scale (width 256). Its validations and tests are
shortened in the same proportion. Nine trials (three learning rates, three seeds) are trained one by one, in threes
and all together. These take turns, and the fastest turn of each counts.

With `--across-cells`, 27 trials of blocks of 2 on three tasks are trained in packs of nine, one for each task, and in
one pack of 27, with both kernels, in CPU time.

Usage: python benchmarks/packs.py [--quick] [--figure packs.svg] [--across-cells]
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

from orch.models.kernel import COMPILED, PLAIN, VARIABLE
from orch.planning.pack_size import pack_size
from orch.sweeps.scales import LAPTOP, PAPER, Scale
from orch.sweeps.trial import Trial, make_trial
from orch.training.train import Training

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "block diagonal (1)": ("block_diagonal", {"block_size": 1}),
    "block diagonal (2)": ("block_diagonal", {"block_size": 2}),
    "block diagonal (8)": ("block_diagonal", {"block_size": 8}),
    "rotation": ("rotation", {}),
    "rnn": ("rnn", {}),
    "lstm": ("lstm", {}),
    "factored (256)": ("factored", {"rank": 256}),
    "bilinear": ("bilinear", {}),
    "mamba (1 layer)": ("mamba", {"layers": 1}),
    "transformer (1 layer)": ("transformer", {"layers": 1}),
}
SIZES = (1, 3, 9)
STEPS = {64: 128, 256: 16}
SCALES: dict[int, Scale] = {64: LAPTOP, 256: PAPER}


CELLS = (("modular_addition", 3), ("modular_addition", 5), ("state_machine", 7))
"""Three tasks with three vocabularies."""


def trials(
    model: str, width: int, steps: int, task: str = "modular_addition", modulus: int = 5, scale: Scale | None = None
) -> list[Trial]:
    """Return nine trials that can be packed, with tests shortened in proportion to their number of steps."""
    name, settings = MODELS[model]
    scale = scale or SCALES[width]
    eval_every = min(scale.eval_every, steps)
    whole = make_trial(task, name, modulus=modulus, width=width, **settings)
    num_positions = sum(whole.task.num_tokens(length) for length in whole.tested_lengths)
    piece = {
        "steps": steps,
        "eval_every": eval_every,
        "validation_samples": scale.samples * eval_every // scale.eval_every,
        "test_samples": scale.samples,
        "test_length": max(1, num_positions * steps // scale.steps),
        "curve_lengths": (),
        "stop_loss": 0.0,
    }
    return [
        make_trial(
            task,
            name,
            modulus=modulus,
            width=width,
            learning_rate=rate,
            init_seed=seed,
            data_seed=seed,
            **settings,
            **piece,
        )
        for rate in (1e-3, 1e-4, 1e-5)
        for seed in (0, 1, 2)
    ]


def seconds(pack: list[Trial]) -> float:
    started = time.perf_counter()
    training = Training(pack)
    while not training.finished:
        training.advance()
    return time.perf_counter() - started


def measure(model: str, width: int, steps: int, turns: int) -> dict[int, float]:
    """Return trials per minute by pack size."""
    nine = trials(model, width, steps)
    best = dict.fromkeys(SIZES, float("inf"))
    for _ in range(turns):
        for size in SIZES:
            packs = [nine[start : start + size] for start in range(0, len(nine), size)]
            best[size] = min(best[size], sum(map(seconds, packs)))
    return {size: 60 * len(nine) / taken for size, taken in best.items()}


def measure_across_cells(width: int, steps: int, turns: int) -> dict[str, float]:
    """Return trials per minute of CPU time of 27 trials: each of three cells in a pack of nine, or all in one pack."""
    cells = [trials("block diagonal (2)", width, steps, *cell, scale=LAPTOP) for cell in CELLS]
    ways = {"by 9": cells, "by 27": [[trial for cell in cells for trial in cell]]}
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(turns):
        for name, packs in ways.items():
            started = time.process_time()
            for pack in packs:
                seconds(pack)
            best[name] = min(best[name], time.process_time() - started)
    return {name: 60 * 27 / taken for name, taken in best.items()}


def compare_across_cells(quick: bool) -> None:
    for kernel in (COMPILED, PLAIN):
        os.environ[VARIABLE] = kernel
        for width in (64, 16):
            found = measure_across_cells(width, STEPS[64], turns=2 if quick else 5)
            rates = "".join(f"{rate:12.1f}" for rate in found.values())
            print(f"width {width}, {kernel:10}{rates}{found['by 27'] / found['by 9']:9.2f}", flush=True)


def draw(rates: dict[tuple[str, int], dict[int, float]]) -> Figure:
    widths = sorted({width for _, width in rates})
    figure = Figure(figsize=(4.5 * len(widths), 3.6), layout="constrained")
    panels = figure.subplots(1, len(widths), sharey=True, squeeze=False)[0]
    for panel, width in zip(panels, widths, strict=True):
        for model in MODELS:
            found = rates[model, width]
            panel.plot(SIZES, [found[size] / found[1] for size in SIZES], marker="o", label=model)
        panel.axhline(1, color="0.7", linewidth=0.8, zorder=0)
        panel.set(title=f"width {width}", xlabel="trials in a pack", xticks=SIZES)
    panels[0].set_ylabel("trials per minute, pack of one = 1")
    panels[-1].legend(fontsize="small", frameon=False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="width 64 only, in a single turn")
    parser.add_argument("--figure", type=Path, help="file to write a figure to; the suffix decides the format")
    parser.add_argument("--across-cells", action="store_true", help="only packs of 27 across cells against nines")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.across_cells:
        print(f"{'blocks of 2':20}{'by 9':>12}{'by 27':>12}{'27 : 9':>9}")
        compare_across_cells(options.quick)
        return
    rates = {}
    heads = "".join(f"{f'pack of {size}':>12}" for size in SIZES)
    for width, steps in ({64: STEPS[64]} if options.quick else STEPS).items():
        print(f"\nwidth {width}: trials of {steps} steps per minute, one core")
        print(f"{'':20}{heads}{'3 : 1':>9}{'9 : 1':>9}{'chosen size':>14}")
        for model in MODELS:
            found = rates[model, width] = measure(model, width, steps, turns=1 if options.quick else 3)
            columns = "".join(f"{found[size]:12.1f}" for size in SIZES)
            ratios = "".join(f"{found[size] / found[1]:9.2f}" for size in SIZES[1:])
            chosen = pack_size(trials(model, width, steps)[0], num_available=SIZES[-1])
            print(f"{model:20}{columns}{ratios}{chosen:14}", flush=True)
    if options.figure is not None:
        draw(rates).savefig(options.figure)


if __name__ == "__main__":
    main()
