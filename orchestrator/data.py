"""A trial's training data: a pure function of its seed and the step, so that stopping and regrouping change nothing.

Shapes: K trials stacked, S steps drawn at once, B samples, T tokens.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from orchestrator.trial import Trial
from tasks.sampling import Batch, Sampler

STEPS_PER_BLOCK = 64

Step = tuple[Tensor, Tensor, Tensor]
"""tokens (K, B, T), end (K, B), target (K, B)."""


def training_data(trials: Sequence[Trial], sampler: Sampler) -> "FreshSamples | FixedSet":
    return (FixedSet if trials[0].train_examples else FreshSamples)(trials, sampler)


class FreshSamples:
    """New samples at every step. Drawn for many steps at a time, because a draw costs the same for one as for many."""

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
        drawn = [
            sampler.draw(
                sampler.generator("train", member.data_seed, number), count, trial.min_inputs, trial.max_inputs
            )
            for member in self._trials
        ]
        stacked = [
            torch.stack([part.unflatten(0, (STEPS_PER_BLOCK, -1)) for part in parts], 1) for parts in _parts(drawn)
        ]
        return list(zip(*(part.unbind() for part in stacked), strict=True))


class FixedSet:
    """A training set of given size, drawn once, visited in a new order at every epoch."""

    def __init__(self, trials: Sequence[Trial], sampler: Sampler):
        self._trials, self._sampler = trials, sampler
        trial = trials[0]
        drawn = []
        for member in trials:
            generator = sampler.generator("training set", member.data_seed)
            if trial.balanced:
                drawn.append(sampler.draw_balanced(generator, trial.train_examples, trial.max_inputs))
            else:
                drawn.append(sampler.draw(generator, trial.train_examples, trial.min_inputs, trial.max_inputs))
        self.samples = drawn
        self._epoch: tuple[int, list[Step]] | None = None

    def batch(self, step: int) -> Step:
        number, offset = divmod(step, self._trials[0].batches_per_epoch)
        if self._epoch is None or self._epoch[0] != number:
            self._epoch = number, self._shuffle(number)
        return self._epoch[1][offset]

    def _shuffle(self, number: int) -> list[Step]:
        shuffled = []
        for member, samples in zip(self._trials, self.samples, strict=True):
            generator = self._sampler.generator("epoch", member.data_seed, number)
            order = torch.randperm(member.train_examples, generator=generator, device=self._sampler.device)
            shuffled.append(Batch(*(part[order] for part in samples)))
        stacked = [torch.stack(parts) for parts in _parts(shuffled)]
        size = self._trials[0].batch_size
        return list(zip(*(part.split(size, dim=1) for part in stacked), strict=True))


def _parts(batches: Sequence[Batch]) -> list[tuple[Tensor, ...]]:
    return list(zip(*batches, strict=True))
