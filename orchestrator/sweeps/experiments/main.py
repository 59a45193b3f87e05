"""Table 1: fifteen models on three tasks, trained on 2 to 10 inputs and tested on 500.

All have the same width. Each is trained with every learning rate, and the best counts. Where the state is narrower
than 64, blocks of 64 become one block of its width.
"""

from collections.abc import Iterator
from itertools import product

from orch.models import ModelConfig
from orch.sweeps.cell import Cell
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results

TITLE = "Fifteen models on three tasks: accuracy by sequence length"
REPRODUCES = "Table 1"

TASKS = ("modular_addition", "state_machine", "modular_arithmetic")


def recurrent(scale: Scale) -> list[tuple[str, ModelConfig]]:
    """Return the bilinear family, LSTM and RNN, each with the name of its variant."""
    return [
        ("", scale.model("bilinear")),
        ("", scale.model("factored", rank=256)),
        *((str(size), scale.model("block_diagonal", block_size=min(size, scale.width))) for size in (1, 2, 8, 64)),
        ("", scale.model("rotation")),
        ("", scale.model("lstm")),
        ("", scale.model("rnn")),
    ]


def models(scale: Scale) -> list[tuple[str, ModelConfig]]:
    depths = [layers for layers in (1, 2, 4) if layers <= scale.deepest]
    deep = product(("mamba", "transformer"), depths)
    return [*recurrent(scale), *((str(layers), scale.model(name, layers=layers)) for name, layers in deep)]


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    for task, modulus, (variant, model) in product(TASKS, scale.moduli, models(scale)):
        yield scale.cell(scale.task(task, modulus), model, variant=variant)
