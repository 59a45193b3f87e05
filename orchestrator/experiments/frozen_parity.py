"""Figure (right): parity from two examples, or a hundred, when only the readout of a random network is trained.

The recurrence is a frozen real diagonal, with and without additive terms. It is trained on one length and tested on 400
inputs; the best of three seeds and two learning rates counts. Only signs matter, so the state is brought back to plus
or minus one at every step: over hundreds of steps it would leave the range of floats.
"""

from collections.abc import Iterator
from itertools import product

from models.config import ADDITIVE
from orchestrator.cell import Cell
from orchestrator.scales import Scale
from orchestrator.selection import Results

TITLE = "Parity by a frozen random network, from two examples"
REPRODUCES = "the figure on additive terms (right)"


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    parity = scale.task("modular_addition", 2)
    for additive, examples, length in product(ADDITIVE, (2, 100), scale.few(10, 20, 50)):
        signs = {"train_normalisation": "block", "eval_normalisation": "block"}
        yield scale.cell(
            parity,
            scale.model("block_diagonal", block_size=1, frozen=True, additive=additive, **signs),
            learning_rates=scale.few(1e-2, 1e-3),
            train_examples=examples,
            balanced=True,
            min_inputs=length,
            max_inputs=length,
            steps=min(1000, scale.steps),
            test_length=400,
            curve_lengths=(10, 20, 50, 100, 200, 400),
        )
