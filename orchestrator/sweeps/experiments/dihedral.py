"""Appendix table: eight models simulating dihedral groups, trained on 2 to 10 inputs and tested on 500.

The depth of Mamba and the transformer is not published: four layers, the deepest of Table 1, is our
assumption; or as many as the scale allows.
"""

from collections.abc import Iterator
from itertools import product

from orch.models import ModelConfig
from orch.sweeps.cell import Cell
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results

TITLE = "Eight models on dihedral groups"
REPRODUCES = "the appendix table of dihedral groups"

ASSUMED_LAYERS = 4


def models(scale: Scale) -> list[tuple[str, ModelConfig]]:
    return [
        ("", scale.model("bilinear")),
        ("256", scale.model("factored", rank=256)),
        ("64", scale.model("block_diagonal", block_size=min(64, scale.width))),
        ("", scale.model("rotation")),
        ("", scale.model("lstm")),
        ("", scale.model("rnn")),
        ("", scale.model("mamba", layers=min(ASSUMED_LAYERS, scale.deepest))),
        ("", scale.model("transformer", layers=min(ASSUMED_LAYERS, scale.deepest))),
    ]


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    for modulus, (variant, model) in product(scale.moduli, models(scale)):
        yield scale.cell(scale.task("dihedral", modulus), model, variant=variant)
