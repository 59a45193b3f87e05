"""Gradient descent on stacked parameters, with momentum m as in `torch.optim.SGD`: v = m v + g, then w -= rate v."""

from typing import Any

import torch
from torch import Tensor

from orch.training.stacked_optimiser import StackedOptimiser, TrialRecipe
from orch.training.torch_compat import fused_sgd_step


class StackedSGD(StackedOptimiser):
    """Gradient descent of a stack of trials. `first` is v, if there is a momentum."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        if any(recipe.momentum for recipe in self.recipes):
            self.first = [torch.zeros_like(parameter) for parameter in self.parameters]

    def update_whole(
        self, recipe: TrialRecipe, trials: list[int], places: list[int], gradients: list[Tensor], rate: float | Tensor
    ) -> None:
        fused_sgd_step(
            self.own("parameters", trials, places),
            gradients,
            self.own("first", trials, places) if self.first else [],
            learning_rate=rate,
            momentum=recipe.momentum,
            weight_decay=recipe.weight_decay,
        )
