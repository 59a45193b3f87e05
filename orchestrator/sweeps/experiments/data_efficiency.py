"""Figure: how many examples a model needs, from fixed training sets of ten inputs, tested on 500.

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
LENGTH = 10
EPOCHS = 1000


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    moduli = [modulus for modulus in MODULI if modulus in scale.moduli]
    sizes: Sequence[int] = SIZES
    if scale.size == LAPTOP.name:
        moduli, sizes = moduli[-1:], SIZES[::2]
    for task, modulus, (variant, model) in product(main.TASKS, moduli, main.recurrent(scale)):
        problem = scale.task(task, modulus)
        best = results.best_learning_rate(scale.cell(problem, model).trials, sweep="main")
        for size in scale.few(*sizes):
            yield scale.cell(
                problem,
                model,
                learning_rates=[best],
                variant=variant,
                train_examples=size,
                min_inputs=LENGTH,
                max_inputs=LENGTH,
                steps=_steps(size, scale),
            )


def _steps(size: int, scale: Scale) -> int:
    steps = EPOCHS * -(-size // 64)
    return steps if scale.size == PAPER.name else min(steps, scale.steps)
