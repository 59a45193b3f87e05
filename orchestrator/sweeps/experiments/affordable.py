"""The cells of the paper that a few CPU cores can afford: no Mamba, no transformer, one seed.

Moduli go up to 10, and up to 50 for the models whose step is the cheapest: rotations, blocks of 1 and 2, and the RNN.
Learning rates take turns. Once one holds at the test length the others are not needed: the best of a cell could rise
by no more than what is missing to 1. Run it with `--cheapest-first` and a budget.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from orch.models import ModelConfig
from orch.sweeps.cell import Cell
from orch.sweeps.experiments import additive, dihedral, factors, frozen_parity, main, param_matched
from orch.sweeps.scales import Scale
from orch.sweeps.selection import LEARNED, Results, Waiting
from orch.sweeps.trial import Trial

TITLE = "The paper's cells that a few CPU cores can afford, one learning rate after another"
REPRODUCES = "parts of the tables; its trials are theirs"
IN_ALL = False

LARGEST_MODULUS = 10
LARGEST_MODULUS_OF_CHEAP_MODELS = 50


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    yield from frozen_parity.cells(scale, results)
    one_seed = dataclasses.replace(scale, seeds=scale.seeds[:1])
    for sweep in (main, factors, additive, dihedral, param_matched):
        for cell in sweep.cells(one_seed, results):
            if cell.example.task.modulus <= largest_modulus(cell.example.model):
                yield dataclasses.replace(cell, trials=in_turn(cell.trials, results))


def largest_modulus(model: ModelConfig) -> int:
    """Return the largest modulus at which a model's failures, 100,000 steps at each rate, still take minutes."""
    if model.slow:
        return 0
    cheap = model.name in ("rotation", "rnn") or (model.name == "block_diagonal" and model.table_variant in ("1", "2"))
    return LARGEST_MODULUS_OF_CHEAP_MODELS if cheap else LARGEST_MODULUS


def in_turn(trials: Sequence[Trial | Waiting], results: Results) -> list[Trial | Waiting]:
    """Return the trials of a cell that are needed so far; the one after them waits for the last outcome.

    The middle learning rate comes first, because most models of the bilinear family hold at the test length with it and
    not with 1e-3. A trial that failed for good keeps the others waiting.
    """
    middle = len(trials) // 2
    known = [each for each in (trials[middle], *trials[:middle], *trials[middle + 1 :]) if isinstance(each, Trial)]
    assert len(known) == len(trials), "a cell of a paper's table waits for nothing"
    finished = [trial for trial in known if results.has(trial)]
    left = [trial for trial in known if not results.has(trial)]
    accuracies = {trial: results.accuracy(trial) for trial in finished}
    enough = [trial for trial, accuracy in accuracies.items() if accuracy is not None and accuracy >= LEARNED]
    if enough:
        return [enough[0]]
    found: list[Trial | Waiting] = [*finished, *left[:1]]
    if len(left) > 1:
        found.append(Waiting(f"the outcome of learning rate {left[0].learning_rate:g}", left[1], (left[0],)))
    return found
