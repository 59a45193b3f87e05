"""A trial's training data: a pure function of its seed and the step, so that stopping and regrouping change nothing.

Shapes: K trials stacked, S steps drawn at once, B samples, T tokens.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from orch.sweeps.trial import Trial
from orch.tasks.sampling import Batch, Sampler

STEPS_PER_BLOCK = 64

Step = tuple[Tensor, Tensor, Tensor]
"""tokens (K, B, T), end (K, B), target (K, B)."""


def training_data(trials: Sequence[Trial], sampler: Sampler) -> "FreshSamples | FixedSet":
    """Return the training data of a stack of trials."""
    return (FixedSet if trials[0].train_examples else FreshSamples)(trials, sampler)


class FreshSamples:
    """New samples at every step. They are drawn for many steps at a time, because a draw has a fixed cost."""

    def __init__(self, trials: Sequence[Trial], sampler: Sampler):
        self._trials, self._sampler = trials, sampler
        self._block: tuple[int, list[Step]] | None = None

    def batch(self, step: int) -> Step:
        number, offset = divmod(step, STEPS_PER_BLOCK)
        if self._block is None or self._block[0] != number:
            self._block = number, self._draw(number)
        return self._block[1][offset]

    def _draw(self, number: int) -> list[Step]:
        trial, sampler = self._trials[0], self._sampler
        count = STEPS_PER_BLOCK * trial.batch_size

        def draw(seed: int) -> Batch:
            generator = sampler.generator("train", seed, number)
            return sampler.draw(generator, count, trial.min_inputs, trial.max_inputs)

        drawn = _per_trial(self._trials, draw)
        stacked = [
            torch.stack([torch.unflatten(part, 0, (STEPS_PER_BLOCK, -1)) for part in parts], 1)
            for parts in _parts(drawn)
        ]
        return list(zip(*(part.unbind() for part in stacked), strict=True))


class FixedSet:
    """A training set of fixed size, drawn once, and visited in a new order at every epoch."""

    def __init__(self, trials: Sequence[Trial], sampler: Sampler):
        self._trials, self._sampler = trials, sampler
        self.samples = _per_trial(trials, self._draw)
        self._epoch: tuple[int, list[Step]] | None = None

    def _draw(self, seed: int) -> Batch:
        trial, generator = self._trials[0], self._sampler.generator("training set", seed)
        if trial.balanced:
            return self._sampler.draw_balanced(generator, trial.train_examples, trial.max_inputs)
        return self._sampler.draw(generator, trial.train_examples, trial.min_inputs, trial.max_inputs)

    def batch(self, step: int) -> Step:
        number, offset = divmod(step, self._trials[0].batches_per_epoch)
        if self._epoch is None or self._epoch[0] != number:
            self._epoch = number, self._shuffle(number)
        return self._epoch[1][offset]

    def _shuffle(self, number: int) -> list[Step]:
        sets = {trial.data_seed: samples for trial, samples in zip(self._trials, self.samples, strict=True)}

        def shuffle(seed: int) -> Batch:
            generator = self._sampler.generator("epoch", seed, number)
            order = torch.randperm(len(sets[seed].target_N), generator=generator, device=self._sampler.device)
            return Batch(*(part[order] for part in sets[seed]))

        shuffled = _per_trial(self._trials, shuffle)
        stacked = [torch.stack(parts) for parts in _parts(shuffled)]
        size = self._trials[0].batch_size
        return list(zip(*(torch.split(part, size, dim=1) for part in stacked), strict=True))


def _per_trial(trials: Sequence[Trial], draw: Callable[[int], Batch]) -> list[Batch]:
    """Return a batch for every trial. Trials with the same data seed share the same data, which is drawn once."""
    drawn = {seed: draw(seed) for seed in {trial.data_seed for trial in trials}}
    return [drawn[trial.data_seed] for trial in trials]


def _parts(batches: Sequence[Batch]) -> list[tuple[Tensor, ...]]:
    return list(zip(*batches, strict=True))
