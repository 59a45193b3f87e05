"""Measurements of what the paper leaves open: state normalisation, initial scales and validation sets.

Each reading of the paper trains models that it says can learn the task, three seeds each, and differs from the
defaults in one thing. The defaults are the reading that generalises for most seeds: docs/reproduction.md has the table.
"""

import dataclasses
from collections.abc import Iterator
from itertools import product
from typing import Any

from orch.sweeps.cell import Cell
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results

TITLE = "What the paper leaves open: normalisation, initial scales and validation sets"
REPRODUCES = "nothing: it decides our defaults"
IN_ALL = False

PROBLEMS: tuple[tuple[str, int, str, str, dict[str, Any]], ...] = (
    ("modular_addition", 2, "1", "block_diagonal", {"block_size": 1}),
    ("modular_addition", 2, "2", "block_diagonal", {"block_size": 2}),
    ("modular_addition", 5, "2", "block_diagonal", {"block_size": 2}),
    ("modular_addition", 5, "", "rotation", {}),
    ("modular_addition", 5, "", "factored", {"rank": 256}),
    ("state_machine", 5, "", "factored", {"rank": 256}),
    ("state_machine", 3, "8", "block_diagonal", {"block_size": 8}),
    ("state_machine", 5, "8", "block_diagonal", {"block_size": 8}),
    ("state_machine", 5, "", "bilinear", {}),
)


def _normalised(training: str, evaluation: str) -> dict[str, Any]:
    return {"train_normalisation": training, "eval_normalisation": evaluation}


READINGS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("RMS 1, embeddings of 0.3: the defaults", {}, {}),
    ("unit norm", _normalised("unit", "unit"), {}),
    ("unit norm per block", _normalised("block", "block"), {}),
    ("only in evaluation", _normalised("none", "rms"), {}),
    ("embeddings of 1", {"embedding_scale": 1.0}, {}),
    ("initial state of 1", {"initial_state_scale": 1.0}, {}),
    ("other sets, 256 samples to validate", {}, {"eval_seed": 1, "validation_samples": 256}),
)
"""Name of each reading, with the settings that it changes in the model and in the trial."""


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    seeds = dataclasses.replace(scale, seeds=scale.few(0, 1, 2))
    for (task, modulus, variant, name, settings), (reading, of_model, of_trial) in product(
        PROBLEMS, scale.few(*READINGS)
    ):
        model = scale.model(name, **settings, **of_model)
        if not model.problems():
            problem = scale.task(task, modulus)
            yield seeds.cell(problem, model, scale.learning_rates, variant=variant, reading=reading, **of_trial)
