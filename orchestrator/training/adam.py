"""Adam (Kingma and Ba, 2015) on stacked parameters: each trial has its own learning rate and moments.

The fused kernel is called once per learning rate and takes one pass over memory. It takes each trial's tensors one by
one, so that the arithmetic is the same for a trial alone and in a stack.
"""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from orch.models.kernel import PLAIN, TRITON
from orch.models.token_table import Gradient, OuterProducts
from orch.training.torch_compat import fused_adam_step

_ByTrial = list[list[Tensor]]
"""Tensors of every trial, in the order of the parameters."""

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class StackedAdam:
    """The optimiser of a stack of trials."""

    def __init__(self, parameters: Sequence[Tensor], learning_rates: Sequence[float], kernel: str = PLAIN):
        """`kernel` is that of the network which computes the gradients."""
        self._stacks = [parameter.detach() for parameter in parameters]
        self.first = [torch.zeros_like(parameter) for parameter in parameters]
        self.second = [torch.zeros_like(parameter) for parameter in parameters]
        self._step = torch.zeros((), device=parameters[0].device)
        self._num_updates = 0
        # On the device, where kernels for GPUs read it.
        self._rate_K = torch.tensor(learning_rates, device=self._step.device) if kernel == TRITON else None
        kinds = (self._stacks, self.first, self.second)
        states: list[_ByTrial] = [
            [[stack[trial] for stack in kind] for trial in range(len(learning_rates))] for kind in kinds
        ]
        self._groups = []
        for rate in dict.fromkeys(learning_rates):
            trials = [trial for trial, its_rate in enumerate(learning_rates) if its_rate == rate]
            self._groups.append((rate, trials, states))

    def set_step(self, step: int) -> None:
        """Set the number of updates that the moments have seen."""
        self._num_updates = step
        self._step.fill_(step)

    def update(self, gradients: Sequence[Gradient]) -> None:
        """Update all parameters, given the gradient of each stack."""
        self._step.add_(1)
        self._num_updates += 1
        # Before all else, because they hold the embedding as it was.
        if self._rate_K is not None:
            self._update_products_on_gpu(gradients, self._rate_K)
        whole = [place for place, gradient in enumerate(gradients) if isinstance(gradient, Tensor)]
        # The kernel walks memory, not strides: a gradient laid out unlike its parameter would be misread.
        by_trial = list(zip(*(cast(Tensor, gradients[place]).contiguous().unbind() for place in whole), strict=True))
        for rate, trials, states in self._groups:
            for place, gradient in enumerate(gradients):
                if self._rate_K is None and not isinstance(gradient, Tensor):
                    self._update_products(place, gradient, rate, trials, states)
            if not whole:
                continue
            parameters, first, second = ([kind[trial][place] for trial in trials for place in whole] for kind in states)
            fused_adam_step(
                parameters,
                [gradient for trial in trials for gradient in by_trial[trial]],
                first,
                second,
                [self._step] * len(parameters),
                learning_rate=rate,
                beta1=BETA1,
                beta2=BETA2,
                epsilon=EPSILON,
            )

    def _update_products_on_gpu(self, gradients: Sequence[Gradient], rate_K: Tensor) -> None:
        """Update the parameters whose gradients are not written out, of all trials at once."""
        from orch.models.gpu_kernels.adam import adam_on_products

        states = zip(self._stacks, self.first, self.second, gradients, strict=True)
        for parameter, first, second, gradient in states:
            if isinstance(gradient, OuterProducts):
                factors = gradient.g_KRO.contiguous(), gradient.x_KRD
                adam_on_products(parameter, first, second, *factors, rate_K, self._step, BETA1, BETA2, EPSILON)

    def _update_products(
        self, place: int, gradient: OuterProducts, rate: float, trials: list[int], states: list[_ByTrial]
    ) -> None:
        from orch.models.compiled.adam import update_trial

        for trial in trials:
            parameter, first, second = (kind[trial][place] for kind in states)
            update_trial(
                parameter,
                first,
                second,
                gradient,
                trial,
                step=self._num_updates,
                learning_rate=rate,
                beta1=BETA1,
                beta2=BETA2,
                epsilon=EPSILON,
            )
