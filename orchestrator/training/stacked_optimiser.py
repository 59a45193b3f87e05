"""The base of all optimisers of stacked parameters: each trial has its own learning rate, amounts and states.

A fused kernel is called once for all trials with the same rate and amounts. It takes each trial's tensors one by one,
so that the arithmetic is the same for a trial alone and in a stack.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor

from orch.models.kernel import PLAIN, TRITON
from orch.models.token_table import Gradient, OuterProducts
from orch.training.clipping import clip_by_norm
from orch.training.schedules import LearningRates, Schedule


class TrialRecipe(NamedTuple):
    """How one trial of a stack is optimised, beside its learning rate."""

    schedule: Schedule = Schedule()
    weight_decay: float = 0.0
    clip_norm: float = 0.0
    momentum: float = 0.0
    num_readable: int | None = None
    """Tokens that the trial reads, where other trials read more."""


class Group(NamedTuple):
    """Trials with the same learning rate and amounts, which one call updates."""

    recipe: TrialRecipe
    trials: list[int]


class StackedOptimiser:
    """The optimiser of a stack of trials. A subclass has the states of its parameters and defines `update_whole`."""

    reads_products = False
    """True if it updates parameters whose gradient is not written out: see `OuterProducts`."""

    def __init__(
        self,
        parameters: Sequence[Tensor],
        learning_rates: Sequence[float],
        num_rows: Sequence[Sequence[int]] | None = None,
        kernel: str = PLAIN,
        recipes: Sequence[TrialRecipe] | None = None,
        recorded: bool = False,
    ):
        """Optimise stacks of parameters. `num_rows[trial][place]` are a trial's own rows, where others are padding.

        The last rounding of an update depends on the number of rows, so padding is left out. `kernel` is that of the
        network which computes the gradients. If updates are `recorded`, they read the learning rate from the device.
        """
        self.first: list[Tensor] = []
        """The first state of every parameter, such as a mean of gradients; empty if the optimiser has none."""
        self.second: list[Tensor] = []
        """The second state of every parameter, such as a mean of squares; empty if the optimiser has none."""
        self.parameters = [parameter.detach() for parameter in parameters]
        self.step = torch.zeros((), device=parameters[0].device)
        self.num_updates = 0
        self.recipes = list(recipes or [TrialRecipe()] * len(learning_rates))
        schedules = [recipe.schedule for recipe in self.recipes]
        on_device = self.step.device if recorded or kernel == TRITON else None
        self._learning_rates = LearningRates(learning_rates, schedules, on_device)
        self._num_rows: list[dict[int, int]] | None = None
        if num_rows is not None:
            places = range(len(parameters))
            ragged = [place for place in places if len({rows[place] for rows in num_rows}) > 1]
            self._num_rows = [{place: rows[place] for place in ragged} for rows in num_rows]
        kinds: dict[tuple[float, TrialRecipe], list[int]] = {}
        for trial, (rate, recipe) in enumerate(zip(learning_rates, self.recipes, strict=True)):
            kinds.setdefault((rate, recipe._replace(clip_norm=0.0, num_readable=None)), []).append(trial)
        self._groups = [Group(recipe, trials) for (_, recipe), trials in kinds.items()]
        self._clips = any(recipe.clip_norm for recipe in self.recipes)
        self.kernel = kernel
        self._by_trial: dict[str, list[list[Tensor]]] = {}

    def set_step(self, step: int) -> None:
        """Set the number of updates that the states have seen."""
        self.num_updates = step
        self.step.fill_(step)

    def update(self, gradients: Sequence[Gradient]) -> None:
        """Update all parameters, given the gradient of each stack."""
        self.step.add_(1)
        self.num_updates += 1
        rates, rate_K = self._learning_rates.at(self.num_updates), self._learning_rates.on_device(self.step)
        if self._clips:
            of_trials = [self._own_gradients(trial, gradients) for trial in range(len(self.recipes))]
            gradients = clip_by_norm(gradients, of_trials, [recipe.clip_norm for recipe in self.recipes])
        # Before all else, because they hold the embedding as it was.
        for place, gradient in enumerate(gradients):
            if isinstance(gradient, OuterProducts) and self.reads_products:
                self.update_products(place, gradient, rates, rate_K)
        if not self.reads_products:
            gradients = [self._written_out(place, gradient) for place, gradient in enumerate(gradients)]
        whole = [place for place, gradient in enumerate(gradients) if isinstance(gradient, Tensor)]
        # The kernel walks memory, not strides: a gradient laid out unlike its parameter would be misread.
        stacks = (cast(Tensor, gradients[place]).contiguous().unbind() for place in whole)
        by_trial = [self._own(trial, own, whole) for trial, own in enumerate(zip(*stacks, strict=True))]
        for recipe, trials in self._groups if whole else ():
            changing = rate_K is not None and self._learning_rates.change
            rate = cast(Tensor, rate_K)[trials[0]] if changing else rates[trials[0]]
            its_gradients = [gradient for trial in trials for gradient in by_trial[trial]]
            self.update_whole(recipe, trials, whole, its_gradients, rate)

    def update_whole(
        self, recipe: TrialRecipe, trials: list[int], places: list[int], gradients: list[Tensor], rate: float | Tensor
    ) -> None:
        """Update the parameters at `places` of these trials, given all gradients of the first trial, then the next."""
        raise NotImplementedError

    def update_products(
        self, place: int, gradient: OuterProducts, rates: Sequence[float], rate_K: Tensor | None
    ) -> None:
        """Update a parameter whose gradient is not written out, of all trials."""
        raise NotImplementedError

    def own(self, kind: str, trials: Sequence[int], places: Sequence[int]) -> list[Tensor]:
        """Return the `parameters`, `first` or `second` of these trials at these places, without padding.

        All tensors of the first trial come first, as the fused kernels take them.
        """
        if kind not in self._by_trial:  # views, made once, because a step of a small model takes little longer
            stacks: list[Tensor] = getattr(self, kind)
            every = range(len(self.recipes))
            self._by_trial[kind] = [self._own(trial, [stack[trial] for stack in stacks]) for trial in every]
        by_trial = self._by_trial[kind]
        return [by_trial[trial][place] for trial in trials for place in places]

    def _own(self, trial: int, tensors: Sequence[Tensor], places: Sequence[int] | None = None) -> list[Tensor]:
        """Return a trial's tensors, which are those at `places`, without padding."""
        if self._num_rows is None:
            return list(tensors)
        rows = self._num_rows[trial]
        placed = enumerate(tensors) if places is None else zip(places, tensors, strict=True)
        return [tensor[: rows[place]] if place in rows else tensor for place, tensor in placed]

    def _own_gradients(self, trial: int, gradients: Sequence[Gradient]) -> list[Gradient]:
        """Return a trial's own part of every gradient, without padding."""
        found: list[Gradient] = []
        for place, gradient in enumerate(gradients):
            if isinstance(gradient, OuterProducts):
                found.append(self._own_products(trial, gradient))
            else:
                found += self._own(trial, [gradient[trial]], [place])
        return found

    def _own_products(self, trial: int, gradient: OuterProducts) -> OuterProducts:
        num_readable = self.recipes[trial].num_readable
        return OuterProducts(*(part[trial, :num_readable] for part in gradient))

    def _written_out(self, place: int, gradient: Gradient) -> Tensor:
        if isinstance(gradient, Tensor):
            return gradient
        products = (self._own_products(trial, gradient) for trial in range(len(self.recipes)))
        return torch.stack([g_RO.T @ x_RD for g_RO, x_RD in products]).view_as(self.parameters[place])
