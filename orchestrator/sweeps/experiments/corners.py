"""The corners of the hierarchy with five seeds: for each model, what it should just learn and what it should not.

The learning rate is one that held at the test length with the first seed, else the best of the scale's rates, in the
order in which `affordable` tries them. The share of the five seeds that learn is then a number with an interval, where
the paper has the best of several seeds.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from orch.sweeps.cell import Cell
from orch.sweeps.experiments import main
from orch.sweeps.experiments.affordable import in_turn
from orch.sweeps.scales import Scale
from orch.sweeps.selection import LEARNED, Results, Waiting
from orch.sweeps.trial import Trial

TITLE = "Five seeds of thirty cells of Table 1: what each model should just learn, and should not"
REPRODUCES = "nothing: it measures how often models learn what they can"
IN_ALL = False

SEEDS = (0, 1, 2, 3, 4)
CORNERS: dict[tuple[str, str], dict[str, tuple[int, ...]]] = {
    ("block_diagonal", "1"): {"modular_addition": (2, 3), "state_machine": (3,)},
    ("block_diagonal", "2"): {"modular_addition": (3, 5), "state_machine": (3,), "modular_arithmetic": (3,)},
    ("rotation", ""): {"modular_addition": (3, 5, 10), "state_machine": (3,)},
    ("block_diagonal", "8"): {"modular_addition": (5,), "state_machine": (3, 5), "modular_arithmetic": (3,)},
    ("block_diagonal", "64"): {"modular_addition": (5,), "state_machine": (5,), "modular_arithmetic": (5,)},
    ("factored", ""): {"modular_addition": (5,), "state_machine": (5,), "modular_arithmetic": (2,)},
    ("bilinear", ""): {"modular_addition": (5,), "state_machine": (5,), "modular_arithmetic": (5,)},
    ("lstm", ""): {"modular_addition": (5,), "state_machine": (5,), "modular_arithmetic": (5,)},
    ("rnn", ""): {"modular_addition": (5,), "state_machine": (5,), "modular_arithmetic": (5,)},
}
"""Moduli of each task, by model and variant as the tables name them. A scale with smaller moduli has its largest."""


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    one_seed = dataclasses.replace(scale, seeds=SEEDS[:1])
    five_seeds = dataclasses.replace(scale, seeds=scale.few(*SEEDS))
    for cell in main.cells(one_seed, results):
        task, model = cell.example.task, cell.example.model
        moduli = CORNERS.get((model.name, cell.variant), {}).get(task.name, ())
        if task.modulus in {min(modulus, max(scale.moduli)) for modulus in moduli}:
            tried = in_turn(cell.trials, results)
            yield dataclasses.replace(cell, trials=tried)
            yield five_seeds.cell(task, model, [rate_of(tried, results)], cell.variant, reading="five seeds")


def rate_of(tried: Sequence[Trial | Waiting], results: Results) -> float | Waiting:
    """Return the rate of the only trial, if it held at the test length; else the best rate, or what it waits for."""
    first = tried[0]
    if isinstance(first, Trial) and (results.accuracy(first) or 0.0) >= LEARNED:
        return first.learning_rate
    return results.best_learning_rate(tried, "affordable")
