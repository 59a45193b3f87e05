"""The optimisers by name, and the one that trials ask for."""

from collections.abc import Sequence

from torch import Tensor

from orch.sweeps.recipe import ADAM, ADAMW, SGD
from orch.sweeps.trial import Trial
from orch.training.adam import StackedAdam, StackedAdamW
from orch.training.schedules import Schedule
from orch.training.sgd import StackedSGD
from orch.training.stacked_optimiser import StackedOptimiser, TrialRecipe

KINDS: dict[str, type[StackedOptimiser]] = {ADAM: StackedAdam, ADAMW: StackedAdamW, SGD: StackedSGD}


def make_optimiser(
    trials: Sequence[Trial],
    parameters: Sequence[Tensor],
    num_rows: Sequence[Sequence[int]] | None,
    kernel: str,
    recorded: bool,
) -> StackedOptimiser:
    """Return the optimiser of a stack of trials: see `StackedOptimiser`."""
    rates = [trial.learning_rate for trial in trials]
    recipes = [
        TrialRecipe(Schedule.of(trial), trial.weight_decay, trial.clip_norm, trial.momentum, trial.vocabulary.readable)
        for trial in trials
    ]
    return KINDS[trials[0].optimiser](parameters, rates, num_rows, kernel, recipes, recorded)
