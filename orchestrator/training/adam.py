"""Adam (Kingma and Ba, 2015) on stacked parameters: each trial has its own learning rate and moments.

The fused kernel is called once per learning rate and takes one pass over memory. It takes each trial's tensors one by
one, so that the arithmetic is the same for a trial alone and in a stack.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from orch.training.torch_compat import fused_adam_step

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class StackedAdam:
    """The optimiser of a stack of trials."""

    def __init__(self, parameters: Sequence[Tensor], learning_rates: Sequence[float]):
        self.first = [torch.zeros_like(parameter) for parameter in parameters]
        self.second = [torch.zeros_like(parameter) for parameter in parameters]
        self._step = torch.zeros((), device=parameters[0].device)
        kinds = ([parameter.detach() for parameter in parameters], self.first, self.second)
        self._groups = []
        for rate in dict.fromkeys(learning_rates):
            trials = [trial for trial, its_rate in enumerate(learning_rates) if its_rate == rate]
            self._groups.append(
                (rate, trials, [[stack[trial] for trial in trials for stack in kind] for kind in kinds])
            )

    def set_step(self, step: int) -> None:
        """Set the number of updates that the moments have seen."""
        self._step.fill_(step)

    def update(self, gradients: Sequence[Tensor]) -> None:
        """Update all parameters, given the gradient of each stack."""
        self._step.add_(1)
        # The kernel walks memory, not strides: a gradient laid out unlike its parameter would be misread.
        by_trial = list(zip(*(gradient.contiguous().unbind() for gradient in gradients), strict=True))
        for rate, trials, (parameters, first, second) in self._groups:
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
