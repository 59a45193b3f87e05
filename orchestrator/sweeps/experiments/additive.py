"""Figure (left) and appendix table: effect of additive terms in the recurrence on parity, addition and state machines.

Models without these terms are those of Table 1. With them, normalising the state changes the model, and the paper does
not say whether it was normalised: both readings are trained. A thrifty scale trains them with one seed.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

from orch.models.bilinear_family.config import ADDITIVE
from orch.sweeps.cell import Cell
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results

TITLE = "Additive terms in the recurrence, with and without a normalised state"
REPRODUCES = "the figure on additive terms (left) and its appendix table"

TASKS = ("modular_addition", "state_machine")
MODULI = (2, 3, 5, 10, 25)
MODELS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("1", "block_diagonal", {"block_size": 1}),
    ("2", "block_diagonal", {"block_size": 2}),
    ("", "bilinear", {}),
)
READINGS = ("normalised", "not normalised")
NOT_NORMALISED = {"train_normalisation": "none", "eval_normalisation": "none"}


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    moduli = [modulus for modulus in MODULI if modulus in scale.moduli]
    few = scale.sparing()
    for task, modulus, (variant, name, settings), additive in product(TASKS, moduli, MODELS, ADDITIVE):
        problem = scale.task(task, modulus)
        model = scale.model(name, additive=additive, **settings)
        if additive == "none":
            yield scale.cell(problem, model, variant=variant)
        else:
            plain = scale.model(name, additive=additive, **settings, **NOT_NORMALISED)
            for reading, each in zip(READINGS, (model, plain), strict=True):
                yield few.cell(problem, each, variant=variant, reading=reading)
