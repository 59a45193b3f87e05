"""Adam (Kingma and Ba, 2015) on stacked parameters: each trial has its own learning rate and moments.

One pass over memory per trial, by the kernel behind `torch.optim.Adam(fused=True)`. Called per trial, it does the same
arithmetic for a trial alone and in a stack.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class StackedAdam:
    def __init__(self, parameters: Sequence[Tensor], learning_rates: Sequence[float]):
        self._learning_rates = list(learning_rates)
        self.first = [torch.zeros_like(parameter) for parameter in parameters]
        self.second = [torch.zeros_like(parameter) for parameter in parameters]
        self._step = torch.zeros((), device=parameters[0].device)
        stacks = ([parameter.detach() for parameter in parameters], self.first, self.second)
        self._members = [[[stack[trial] for stack in kind] for kind in stacks] for trial in range(len(learning_rates))]

    def set_step(self, step: int) -> None:
        """How many updates the moments have seen."""
        self._step.fill_(step)

    def update(self, gradients: Sequence[Tensor]) -> None:
        self._step.add_(1)
        steps = [self._step] * len(gradients)
        # The kernel walks memory, not strides: a gradient laid out unlike its parameter would be misread.
        by_trial = zip(*(gradient.contiguous().unbind() for gradient in gradients), strict=True)
        for rate, (parameters, first, second), grads in zip(self._learning_rates, self._members, by_trial, strict=True):
            torch._fused_adam_(
                parameters,
                list(grads),
                first,
                second,
                [],
                steps,
                lr=rate,
                beta1=BETA1,
                beta2=BETA2,
                weight_decay=0.0,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )
