"""Twenty small trials, the same at every scale: accuracy by length of five models on parity and addition modulo 3.

Each model is trained with two learning rates, of which the better counts. At 500 inputs the real diagonal holds on
parity only; 2x2 blocks, the full bilinear model and the LSTM hold on both; the transformer holds on neither.
"""

from collections.abc import Iterator
from itertools import product

from orch.sweeps.cell import Cell
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results

TITLE = "Five small models on parity and addition modulo 3"
REPRODUCES = "the gist of Table 1, in minutes"
IN_ALL = False

SMALL = Scale(
    name="demo",
    about="small",
    width=64,
    steps=3000,
    eval_every=100,
    learning_rates=(3e-3, 3e-4),
    seeds=(0,),
    moduli=(2, 3),
    samples=1024,
)
MODELS = (
    ("", SMALL.model("bilinear")),
    ("2", SMALL.model("block_diagonal", block_size=2)),
    ("1", SMALL.model("block_diagonal", block_size=1)),
    ("", SMALL.model("lstm")),
    ("1", SMALL.model("transformer", layers=1)),
)


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    small = SMALL.under(scale.protocol)
    for modulus, (variant, model) in product(SMALL.moduli, MODELS):
        yield small.cell(SMALL.task("modular_addition", modulus), model, variant=variant)
