"""The paper's protocol under several readings: embedding scale, normalisation and model varied together.

The paper normalises the state in evaluation and leaves training and the embeddings' scale open. `details` varies one of
these at a time; here they vary jointly, because a state that is not normalised grows or shrinks with the embeddings
(`initial_growth` of a model's settings says by how much before training). Without normalisation in training the
smallest learning rate is tried too: a larger one changes the full model's transitions so much in one step that states
overflow.
"""

import dataclasses
from collections.abc import Iterator
from itertools import product
from typing import Any

from orch.sweeps.cell import Cell
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results

TITLE = "Readings of the paper's protocol: embedding scale, normalisation and model together"
REPRODUCES = "nothing: it decides how the tables are run"
IN_ALL = False

PROBLEMS: tuple[tuple[str, int, str, dict[str, Any]], ...] = (
    ("modular_addition", 2, "block_diagonal", {"block_size": 1}),
    ("modular_addition", 5, "block_diagonal", {"block_size": 2}),
    ("modular_addition", 5, "rotation", {}),
    ("modular_addition", 5, "factored", {"rank": 256}),
    ("modular_addition", 5, "bilinear", {}),
    ("state_machine", 5, "factored", {"rank": 256}),
    ("state_machine", 5, "block_diagonal", {"block_size": 8}),
    ("state_machine", 5, "block_diagonal", {"block_size": 64}),
    ("state_machine", 5, "bilinear", {}),
    ("modular_arithmetic", 5, "bilinear", {}),
)
NORMALISATIONS = (("none", "rms"), ("none", "none"), ("rms", "rms"))
"""Normalisation of the state in training and in evaluation."""
STEPS = 20_000


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    """Yield a cell for each problem and reading, with one seed and at most three learning rates."""
    one_seed = dataclasses.replace(scale, seeds=scale.seeds[:1])
    readings = product(scale.few(*NORMALISATIONS), scale.few(1.0, 0.3))
    for (task, modulus, name, settings), ((training, evaluation), embeddings) in product(PROBLEMS, list(readings)):
        model = scale.model(
            name,
            **settings,
            embedding_scale=embeddings,
            train_normalisation=training,
            eval_normalisation=evaluation,
        )
        if not model.problems():
            yield one_seed.cell(
                scale.task(task, modulus),
                model,
                scale.learning_rates if training == "none" else scale.learning_rates[:2],
                variant=model.table_variant,
                reading=f"embeddings of {embeddings}, {training} in training, {evaluation} in evaluation",
                steps=min(STEPS, scale.steps),
            )
