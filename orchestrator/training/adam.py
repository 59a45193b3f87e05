"""Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019) on stacked parameters.

Weight decay is added to the gradient by Adam. AdamW instead multiplies the weights by 1 - rate * decay before it.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from orch.models.kernel import TRITON
from orch.models.token_table import OuterProducts
from orch.training.stacked_optimiser import StackedOptimiser, TrialRecipe
from orch.training.torch_compat import fused_adam_step, fused_adamw_step

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class StackedAdam(StackedOptimiser):
    """Adam of a stack of trials."""

    decoupled = False
    """True if weight decay is applied to the weights, and not added to the gradient."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self.first = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.second = [torch.zeros_like(parameter) for parameter in self.parameters]
        # A weight decay that is added to the gradient is no sum of few products.
        self.reads_products = self.decoupled or not any(recipe.weight_decay for recipe in self.recipes)

    def update_whole(
        self, recipe: TrialRecipe, trials: list[int], places: list[int], gradients: list[Tensor], rate: float | Tensor
    ) -> None:
        parameters, first, second = (self.own(kind, trials, places) for kind in ("parameters", "first", "second"))
        (fused_adamw_step if self.decoupled else fused_adam_step)(
            parameters,
            gradients,
            first,
            second,
            [self.step] * len(parameters),
            learning_rate=rate,
            beta1=BETA1,
            beta2=BETA2,
            epsilon=EPSILON,
            weight_decay=recipe.weight_decay,
        )

    def update_products(
        self, place: int, gradient: OuterProducts, rates: Sequence[float], rate_K: Tensor | None
    ) -> None:
        parameter, first, second = (stacks[place] for stacks in (self.parameters, self.first, self.second))
        if any(recipe.weight_decay for recipe in self.recipes):
            for trial, recipe in enumerate(self.recipes):
                rate = rates[trial] if rate_K is None else rate_K[trial]
                parameter[trial].mul_(1 - rate * recipe.weight_decay)
        if self.kernel == TRITON:
            assert rate_K is not None
            from orch.models.gpu_kernels.adam import adam_on_products

            factors = gradient.g_KRO.contiguous(), gradient.x_KRD
            adam_on_products(parameter, first, second, *factors, rate_K, self.step, BETA1, BETA2, EPSILON)
            return
        from orch.models.compiled.adam import update_stack

        constants = {"beta1": BETA1, "beta2": BETA2, "epsilon": EPSILON}
        update_stack(parameter, first, second, gradient, rates, step=self.num_updates, **constants)


class StackedAdamW(StackedAdam):
    """AdamW of a stack of trials."""

    decoupled = True
