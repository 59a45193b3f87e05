"""Models on tasks that they should learn, with five seeds that had no part in any choice.

A model should learn a task up to the modulus where the paper's tables, or for rotations the theory, say that it holds
at 500 inputs. The learning rate is the one that `main` or `dihedral` finds best with its own seeds: this waits for
it. Where fewer than four of the five seeds hold, the scale's other learning rates are tried, too.
"""

import dataclasses
from collections.abc import Iterator

from orch.sweeps.cell import Cell
from orch.sweeps.experiments import dihedral, main
from orch.sweeps.scales import Scale
from orch.sweeps.selection import LEARNED, Results
from orch.sweeps.trial import Trial

TITLE = "Five fresh seeds of models on what they should learn"
REPRODUCES = "nothing: it measures how often a model learns what it can"
IN_ALL = False

SEEDS = (10, 11, 12, 13, 14)
LARGEST: dict[tuple[str, str], dict[str, int]] = {
    ("bilinear", ""): {"modular_addition": 50, "state_machine": 50, "modular_arithmetic": 50, "dihedral": 50},
    ("factored", ""): {"modular_addition": 50, "state_machine": 25, "modular_arithmetic": 2},
    ("factored", "256"): {"dihedral": 50},
    ("block_diagonal", "64"): {"modular_addition": 50, "state_machine": 50, "modular_arithmetic": 10, "dihedral": 50},
    ("block_diagonal", "8"): {"modular_addition": 50, "state_machine": 5, "modular_arithmetic": 3},
    ("block_diagonal", "2"): {"modular_addition": 50, "state_machine": 2},
    ("block_diagonal", "1"): {"modular_addition": 2, "state_machine": 2},
    ("rotation", ""): {"modular_addition": 50, "state_machine": 2},
    ("lstm", ""): {"modular_addition": 10, "state_machine": 10, "modular_arithmetic": 25, "dihedral": 10},
    ("rnn", ""): {"modular_addition": 10, "state_machine": 10, "modular_arithmetic": 10, "dihedral": 25},
}
"""Largest modulus of each task that a model and variant, named as in the tables, should learn."""
ENOUGH = 4
"""Number of the five seeds that should hold at the test length."""


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    fresh = dataclasses.replace(scale, seeds=scale.few(*SEEDS))
    for sweep, table in (("main", main), ("dihedral", dihedral)):
        for known in table.cells(scale, results):
            task, model, variant = known.example.task, known.example.model, known.variant
            if task.modulus <= LARGEST.get((model.name, variant), {}).get(task.name, 0):
                best = results.best_learning_rate(known.trials, sweep)
                chosen = fresh.cell(task, model, learning_rates=[best], variant=variant)
                yield chosen
                if too_few_hold(chosen, results):
                    others = sorted(known.learning_rates - {best})
                    yield fresh.cell(task, model, learning_rates=others, variant=variant, reading="other rates")


def too_few_hold(cell: Cell, results: Results) -> bool:
    """Return whether all seeds of a cell are finished and fewer than `ENOUGH` of them hold at the test length."""
    accuracies = [results.accuracy(trial) if isinstance(trial, Trial) else None for trial in cell.trials]
    known = [accuracy for accuracy in accuracies if accuracy is not None]
    return len(known) == len(accuracies) and sum(accuracy >= LEARNED for accuracy in known) < min(ENOUGH, len(known))
