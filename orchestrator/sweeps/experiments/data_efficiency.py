"""Figure: how many examples a model needs, from fixed training sets, tested on 500 inputs.

The paper says that samples have ten inputs, and also that all other settings are those of Table 1, whose samples have
two to ten. All models are trained by the first reading, and the two that the paper's claim compares by both.

Each model is trained for 1000 epochs, with the learning rate that did best for it on the task in Table 1: this sweep
waits for `main`. The sizes of the training sets are our choice, for the figure's numbers are not published. Where a
scale allows fewer steps than 1000 epochs take, the scale's steps are the budget. The laptop scale has one
modulus and every other size.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from orch.sweeps.cell import Cell
from orch.sweeps.experiments import main
from orch.sweeps.scales import LAPTOP, PAPER, Scale
from orch.sweeps.selection import Results

TITLE = "Accuracy at length 500 from fixed training sets"
REPRODUCES = "the figure on data efficiency"

SIZES = (100, 300, 1000, 3000, 10_000)
MODULI = (2, 3, 5, 10)
SHORTEST = {"sets of 10 inputs": 10, "sets of 2 to 10 inputs": 2}
"""The fewest inputs of a training sample, by reading."""
READINGS = tuple(SHORTEST)
LONGEST = 10
COMPARED = ("bilinear", "lstm")
"""The models that the paper's claim compares."""
EPOCHS = 1000


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    moduli = [modulus for modulus in MODULI if modulus in scale.moduli]
    sizes: Sequence[int] = SIZES
    if scale.size == LAPTOP.name:
        moduli, sizes = moduli[-1:], SIZES[::2]
    for task, modulus, (variant, model) in product(main.TASKS, moduli, main.recurrent(scale)):
        problem = scale.task(task, modulus)
        best = results.best_learning_rate(scale.cell(problem, model).trials, sweep="main")
        readings = READINGS if model.name in COMPARED else READINGS[:1]
        for size, reading in product(scale.few(*sizes), readings):
            yield scale.cell(
                problem,
                model,
                learning_rates=[best],
                variant=variant,
                reading=reading,
                train_examples=size,
                min_inputs=SHORTEST[reading],
                max_inputs=LONGEST,
                steps=_steps(size, scale),
            )


def _steps(size: int, scale: Scale) -> int:
    steps = EPOCHS * -(-size // 64)
    return steps if scale.size == PAPER.name else min(steps, scale.steps)
