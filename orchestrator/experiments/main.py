"""Table 1: fifteen models on three tasks, trained on 2 to 10 inputs and tested on 500.

All have the same width, and each is trained with every learning rate, of which the best counts. Blocks of 64 become
one block as wide as the state where that is narrower.
"""

from collections.abc import Iterator
from itertools import product

from models import ModelConfig
from orchestrator.scales import Scale
from orchestrator.selection import Results, Waiting
from orchestrator.trial import Trial

TITLE = "Fifteen models on three tasks: who tracks state, and at what length"
REPRODUCES = "Table 1"

TASKS = ("modular_addition", "state_machine", "modular_arithmetic")


def models(scale: Scale) -> list[ModelConfig]:
    return [
        scale.model("bilinear"),
        scale.model("factored", rank=256),
        *(scale.model("block_diagonal", block_size=min(size, scale.width)) for size in (1, 2, 8, 64)),
        scale.model("rotation"),
        scale.model("lstm"),
        scale.model("rnn"),
        *(scale.model("mamba", layers=layers) for layers in (1, 2, 4)),
        *(scale.model("transformer", layers=layers) for layers in (1, 2, 4)),
    ]


def trials(scale: Scale, results: Results) -> Iterator[Trial | Waiting]:
    for task, modulus, model in product(TASKS, scale.moduli, models(scale)):
        yield from scale.cell(scale.task(task, modulus), model)
