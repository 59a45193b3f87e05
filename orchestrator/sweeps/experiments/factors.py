"""Appendix table: how many factors a bilinear model needs to track a state machine, from one to the full tensor.

The factored model with 256 factors and the full model are those of Table 1. A narrower state has fewer counts to try.
"""

from collections.abc import Iterator

from orch.sweeps.cell import Cell
from orch.sweeps.scales import PAPER, Scale
from orch.sweeps.selection import Results

TITLE = "The number of factors against the size of the state machine"
REPRODUCES = "the appendix table of factor counts"

RANKS = (1, 2, 4, 8, 16, 64, 128, 256, 512, 1024, 2048)
MOST_PER_WIDTH = RANKS[-1] // PAPER.width


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    for modulus in scale.moduli:
        machine = scale.task("state_machine", modulus)
        for rank in scale.few(*(rank for rank in RANKS if rank <= MOST_PER_WIDTH * scale.width)):
            yield scale.cell(machine, scale.model("factored", rank=rank), variant=str(rank))
        yield scale.cell(machine, scale.model("bilinear"))
