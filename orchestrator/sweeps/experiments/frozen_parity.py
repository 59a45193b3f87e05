"""Figure (right): parity from two examples, or a hundred, when only the readout of a random network is trained.

The recurrence is a frozen real diagonal, with and without additive terms. It is trained on one length and tested on 400
inputs; the best of three seeds and two learning rates counts. Without additive terms only signs matter, so the state is
brought back to plus or minus one at every step: over hundreds of steps it would leave the range of floats. With them
that changes the model, and the paper does not say whether it did: both are trained, as in `additive`.
"""

from collections.abc import Iterator
from itertools import product

from orch.models.bilinear_family.config import ADDITIVE
from orch.sweeps.cell import Cell
from orch.sweeps.experiments.additive import NOT_NORMALISED, READINGS
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results

TITLE = "Parity by a frozen random network, from two examples"
REPRODUCES = "the figure on additive terms (right)"

SIGNS = {"train_normalisation": "block", "eval_normalisation": "block"}


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    for additive, examples, length in product(ADDITIVE, (2, 100), scale.few(10, 20, 50)):
        readings = scale.few(*zip(READINGS, (SIGNS, NOT_NORMALISED), strict=True))
        for reading, normalisation in readings if additive != "none" else [("", SIGNS)]:
            yield scale.cell(
                scale.task("modular_addition", 2),
                scale.model("block_diagonal", block_size=1, frozen=True, additive=additive, **normalisation),
                learning_rates=scale.few(1e-2, 1e-3),
                reading=reading,
                train_examples=examples,
                balanced=True,
                min_inputs=length,
                max_inputs=length,
                steps=min(1000, scale.steps),
                test_length=400,
                curve_lengths=(10, 20, 50, 100, 200, 400),
            )
