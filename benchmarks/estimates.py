"""Estimated against measured seconds of short trials: every model alone and in its pack, on one core, in one run.

A trial is a piece of one of the laptop scale or, with --width 256, of the paper's: fewer steps, with a validation at
the end and one test. Measured is CPU time of the process, so that other processes disturb less; the fastest turn of
each counts. The first step is not counted, in which kernels are compiled.

With --store, finished trials of a store are compared with their estimates as well: the seconds that they took by the
clock, on a machine that may have had other work. `--store bundled` has those that ship; most of them, all without the
name of a kernel, ran with older and slower code.

Usage: python benchmarks/estimates.py [--width 64] [--turns 3] [--store bundled]
"""

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch

from orch import models
from orch.core.errors import OrchError
from orch.models.kernel import PLAIN
from orch.planning.estimate import estimate_seconds
from orch.planning.pack_size import pack_size
from orch.store import Store
from orch.sweeps.trial import Trial, make_trial
from orch.training.train import Training

VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "block_diagonal": tuple({"block_size": size} for size in (1, 2, 8, 64)),
    "factored": ({"rank": 16}, {"rank": 256}),
}
STEPS = {64: 300, 256: 30}


def make_trials(model: str, task: str, width: int, settings: dict[str, Any], count: int) -> list[Trial]:
    piece = {"eval_every": STEPS[width] - 1, "steps": STEPS[width], "curve_lengths": (), "test_length": 50}
    return [
        make_trial(
            task, model, modulus=5, width=width, init_seed=seed, data_seed=seed, stop_loss=0.0, **piece, **settings
        )
        for seed in range(count)
    ]


def measure(trials: list[Trial], turns: int) -> tuple[float, float]:
    """Return the measured and the estimated seconds of each trial of a pack."""
    best, kernel = math.inf, PLAIN
    for _ in range(turns):
        training = Training(trials)
        kernel = training.kernel
        training.advance(stop_at=1)
        started = time.process_time()
        while not training.finished:
            training.advance()
        best = min(best, time.process_time() - started)
    # The last validation is of one step: with it, there are as many steps and validations as were measured.
    return best / len(trials), estimate_seconds(trials[0], trials[0].steps, "cpu", len(trials), kernel)


def compare_fresh(width: int, turns: int) -> None:
    print(f"width {width}: seconds of CPU time of a trial of {STEPS[width]} steps, estimated / measured")
    print(f"{'':62}{'alone':>8}{'':8}{'ratio':>7}{'pack':>6}{'each':>8}{'':8}{'ratio':>7}")
    ratios = []
    for model in sorted(models.REGISTRY):
        for settings in VARIANTS.get(model, ({},)):
            for task in ("modular_addition", "modular_arithmetic"):
                trials = make_trials(model, task, width, settings, count=4)
                size = max(2, pack_size(trials[0], num_available=4))
                columns = ""
                for number in (1, size):
                    measured, estimated = measure(trials[:number], turns)
                    ratios.append(estimated / measured)
                    size_column = "" if number == 1 else f"{number:6}"
                    columns += f"{size_column}{estimated:8.3f}{measured:8.3f}{ratios[-1]:7.2f}"
                print(f"{trials[0].label:62}{columns}", flush=True)
    print_spread(ratios)


def compare_finished(store: str) -> None:
    columns = ["config", "kernel", "seconds", "steps_trained", "wall_seconds", "device_seconds"]
    groups: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for row in Store.open(store).read("trials", columns).to_pylist():
        try:
            trial = Trial.from_dict(json.loads(row["config"]))
        except OrchError:
            continue
        pack = max(1.0, row["wall_seconds"] / row["device_seconds"])
        kernel = row["kernel"] or "before"
        estimated = estimate_seconds(trial, row["steps_trained"], "cpu", pack, row["kernel"] or PLAIN)
        name = f"{trial.model.name} {trial.model.full_summary}, width {trial.model.width}"
        groups[kernel, name, "packs" if pack > 1.5 else "alone"].append((estimated, row["seconds"]))
    print(f"\nfinished trials of {store}: seconds, estimated / measured")
    ratios = []
    for (kernel, name, how), pairs in sorted(groups.items()):
        estimated, measured = (sum(values) for values in zip(*pairs, strict=True))
        ratios.append(estimated / measured)
        print(f"{name:46}{kernel:>10} {how} {len(pairs):5} trials{estimated:10.1f}{measured:10.1f}{ratios[-1]:7.2f}")
    print_spread(ratios)


def print_spread(ratios: Iterable[float]) -> None:
    found = sorted(ratios)
    close = sum(1 / 1.3 <= ratio <= 1.3 for ratio in found)
    print(f"ratio: {found[0]:.2f} to {found[-1]:.2f}, median {found[len(found) // 2]:.2f};", end=" ")
    print(f"{close} of {len(found)} within 30%")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--width", type=int, choices=sorted(STEPS), default=64)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--store", help="compare with the finished trials of this store as well")
    options = parser.parse_args()
    torch.set_num_threads(1)
    compare_fresh(options.width, options.turns)
    if options.store:
        compare_finished(options.store)


if __name__ == "__main__":
    main()
