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

    def __init__(
        self,
        parameters: Sequence[Tensor],
        learning_rates: Sequence[float],
        num_rows: Sequence[Sequence[int]] | None = None,
        kernel: str = PLAIN,
    ):
        """Optimise stacks of parameters. `num_rows[trial][place]` are a trial's own rows, where others are padding.

        The last rounding of an update depends on the number of rows, so padding is left out. `kernel` is that of the
        network which computes the gradients.
        """
        self.first = [torch.zeros_like(parameter) for parameter in parameters]
        self.second = [torch.zeros_like(parameter) for parameter in parameters]
        self._step = torch.zeros((), device=parameters[0].device)
        self._num_updates = 0
        self._stacks = kinds = ([parameter.detach() for parameter in parameters], self.first, self.second)
        self._learning_rates = list(learning_rates)
        # On the device, where kernels for GPUs read it.
        self._rate_K = torch.tensor(learning_rates, device=self._step.device) if kernel == TRITON else None
        self._num_rows: list[dict[int, int]] | None = None
        if num_rows is not None:
            places = range(len(parameters))
            ragged = [place for place in places if len({rows[place] for rows in num_rows}) > 1]
            self._num_rows = [{place: rows[place] for place in ragged} for rows in num_rows]
        states: list[_ByTrial] = [
            [self._own(trial, [stack[trial] for stack in kind]) for trial in range(len(learning_rates))]
            for kind in kinds
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
        for place, gradient in enumerate(gradients):
            if isinstance(gradient, OuterProducts):
                self._update_products(place, gradient)
        whole = [place for place, gradient in enumerate(gradients) if isinstance(gradient, Tensor)]
        # The kernel walks memory, not strides: a gradient laid out unlike its parameter would be misread.
        stacks = (cast(Tensor, gradients[place]).contiguous().unbind() for place in whole)
        by_trial = [self._own(trial, own, whole) for trial, own in enumerate(zip(*stacks, strict=True))]
        for rate, trials, states in self._groups if whole else ():
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

    def _own(self, trial: int, tensors: Sequence[Tensor], places: Sequence[int] | None = None) -> list[Tensor]:
        """Return a trial's tensors, which are those at `places`, without padding."""
        if self._num_rows is None:
            return list(tensors)
        rows = self._num_rows[trial]
        placed = enumerate(tensors) if places is None else zip(places, tensors, strict=True)
        return [tensor[: rows[place]] if place in rows else tensor for place, tensor in placed]

    def _update_products(self, place: int, gradient: OuterProducts) -> None:
        """Update a parameter whose gradient is not written out, of all trials."""
        parameter, first, second = (stacks[place] for stacks in self._stacks)
        if self._rate_K is not None:
            from orch.models.gpu_kernels.adam import adam_on_products

            factors = gradient.g_KRO.contiguous(), gradient.x_KRD
            adam_on_products(parameter, first, second, *factors, self._rate_K, self._step, BETA1, BETA2, EPSILON)
            return
        from orch.models.compiled.adam import update_stack

        constants = {"beta1": BETA1, "beta2": BETA2, "epsilon": EPSILON}
        update_stack(parameter, first, second, gradient, self._learning_rates, step=self._num_updates, **constants)
