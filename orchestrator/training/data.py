"""A trial's training data: a pure function of its seed and the step, so that stopping and regrouping change nothing.

Shapes: K trials stacked, S steps drawn at once, B samples, T tokens.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from orch.sweeps.batches import STEPS_PER_BLOCK
from orch.sweeps.trial import Trial
from orch.tasks.sampling import Batch, Sampler

Step = tuple[Tensor, Tensor, Tensor]
"""tokens (K, B, T), end (K, B), target (K, B)."""


class Block(NamedTuple):
    """The batches of consecutive steps, all of one size."""

    first: int
    """The step that the first batch is for."""
    tokens_SKBT: Tensor
    end_SKB: Tensor
    target_SKB: Tensor

    def steps(self) -> list[Step]:
        return list(zip(*(part.unbind() for part in self[1:]), strict=True))


def training_data(trials: Sequence[Trial], sampler: Sampler) -> "TrainingData":
    """Return the training data of a stack of trials."""
    return (FixedSet if trials[0].train_examples else FreshSamples)(trials, sampler)


class TrainingData:
    """Batches by step. A subclass defines `block`."""

    def __init__(self, trials: Sequence[Trial], sampler: Sampler):
        self._trials, self._sampler = trials, sampler
        self._first, self._steps = 0, list[Step]()

    def block(self, step: int) -> Block:
        """Return the block of batches that has the one for this step."""
        raise NotImplementedError

    def batch(self, step: int) -> Step:
        """Return the batch for this step. Its block is kept for the steps that follow."""
        if not self._first <= step < self._first + len(self._steps):
            block = self.block(step)
            self._first, self._steps = block.first, block.steps()
        return self._steps[step - self._first]


class FreshSamples(TrainingData):
    """New samples at every step. They are drawn for many steps at a time, because a draw has a fixed cost."""

    def block(self, step: int) -> Block:
        number = step // STEPS_PER_BLOCK
        trial, sampler = self._trials[0], self._sampler
        count = STEPS_PER_BLOCK * trial.batch_size

        def draw(seed: int) -> Batch:
            generator = sampler.generator("train", seed, number)
            return sampler.draw(generator, count, trial.min_inputs, trial.max_inputs)

        drawn = _per_trial(self._trials, draw)
        stacked = (
            torch.stack([torch.unflatten(part, 0, (STEPS_PER_BLOCK, -1)) for part in parts], 1)
            for parts in _parts(drawn)
        )
        return Block(number * STEPS_PER_BLOCK, *stacked)


class FixedSet(TrainingData):
    """A training set of fixed size, drawn once, and visited in a new order at every epoch.

    An epoch is one block, or two if its last batch is smaller than the others.
    """

    def __init__(self, trials: Sequence[Trial], sampler: Sampler):
        super().__init__(trials, sampler)
        self.samples = _per_trial(trials, self._draw)
        self._epoch: tuple[int, list[Tensor]] | None = None

    def _draw(self, seed: int) -> Batch:
        trial, generator = self._trials[0], self._sampler.generator("training set", seed)
        if trial.balanced:
            return self._sampler.draw_balanced(generator, trial.train_examples, trial.max_inputs)
        return self._sampler.draw(generator, trial.train_examples, trial.min_inputs, trial.max_inputs)

    def block(self, step: int) -> Block:
        trial = self._trials[0]
        number, offset = divmod(step, trial.batches_per_epoch)
        if self._epoch is None or self._epoch[0] != number:
            self._epoch = number, self._shuffle(number)
        num_full = trial.train_examples // trial.batch_size
        num_in_full = num_full * trial.batch_size
        if offset < num_full:
            first, batches = 0, (torch.unflatten(part[:, :num_in_full], 1, (num_full, -1)) for part in self._epoch[1])
        else:
            first, batches = num_full, (part[:, None, num_in_full:] for part in self._epoch[1])
        return Block(number * trial.batches_per_epoch + first, *(part.transpose(0, 1) for part in batches))

    def _shuffle(self, number: int) -> list[Tensor]:
        """Return the set of every trial in the order of this epoch: tokens (K, N, T), end (K, N), target (K, N)."""
        sets = {trial.data_seed: samples for trial, samples in zip(self._trials, self.samples, strict=True)}

        def shuffle(seed: int) -> Batch:
            generator = self._sampler.generator("epoch", seed, number)
            order = torch.randperm(len(sets[seed].target_N), generator=generator, device=self._sampler.device)
            return Batch(*(part[order] for part in sets[seed]))

        return [torch.stack(parts) for parts in _parts(_per_trial(self._trials, shuffle))]


def _per_trial(trials: Sequence[Trial], draw: Callable[[int], Batch]) -> list[Batch]:
    """Return a batch for every trial. Trials with the same data seed share the same data, which is drawn once."""
    drawn = {seed: draw(seed) for seed in {trial.data_seed for trial in trials}}
    return [drawn[trial.data_seed] for trial in trials]


def _parts(batches: Sequence[Batch]) -> list[tuple[Tensor, ...]]:
    return list(zip(*batches, strict=True))
