"""Figure: the angles by which the rotation model turns its state for each input of addition modulo 10.

They are read off the trained weights, which the store keeps. At paper scale these are trials of Table 1.
"""

from collections.abc import Iterator

from orch.sweeps.cell import Cell
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results

TITLE = "Rotation angles learned for addition modulo 10"
REPRODUCES = "the figure on rotation angles"

MODULUS = 10


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    yield scale.cell(scale.task("modular_addition", MODULUS), scale.model("rotation"))
