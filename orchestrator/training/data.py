"""A trial's training data: a pure function of its seed and the step, so that stopping and regrouping change nothing.

Shapes: K trials stacked, S steps drawn at once, B samples, T tokens. Ends and targets are (…, B, P) if samples have
several labels.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from orch.sweeps.batches import STEPS_PER_BLOCK
from orch.sweeps.trial import Trial
from orch.tasks import Task
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


def training_data(trials: Sequence[Trial], *samplers: Sampler) -> "TrainingData":
    """Return the training data of a stack of trials, given a sampler of every task."""
    return (FixedSet if trials[0].train_examples else FreshSamples)(trials, *samplers)


class TrainingData:
    """Batches by step. A subclass defines `block`.

    Sequences of all tasks have the length of the longest, and one token stands for padding: the first that none reads.
    """

    def __init__(self, trials: Sequence[Trial], *samplers: Sampler):
        self._trials = trials
        self._samplers = {sampler.task: sampler for sampler in samplers}
        self._padding = max(trial.task.num_readable for trial in trials)
        self._num_tokens = max(trial.task.num_tokens(trial.max_inputs) for trial in trials)
        self._first, self._steps = 0, list[Step]()

    def block(self, step: int) -> Block:
        """Return the block of batches that has the one for this step."""
        raise NotImplementedError

    def _per_trial(self, draw: Callable[[Trial, Sampler], Batch]) -> list[Batch]:
        """Return a batch for every trial. Trials with the same task and data seed share data, which is drawn once."""
        alike = {(trial.task, trial.data_seed): trial for trial in self._trials}
        drawn = {key: self._padded(key[0], draw(trial, self._samplers[key[0]])) for key, trial in alike.items()}
        return [drawn[trial.task, trial.data_seed] for trial in self._trials]

    def _padded(self, task: Task, batch: Batch) -> Batch:
        """Return the samples of a task with the padding and the length of this stack."""
        tokens_NT, missing = batch.tokens_NT, self._num_tokens - batch.tokens_NT.shape[1]
        if task.num_readable != self._padding:
            tokens_NT = tokens_NT.masked_fill(tokens_NT >= task.num_readable, self._padding)
        if missing:
            tokens_NT = torch.nn.functional.pad(tokens_NT, (0, missing), value=self._padding)
        return batch._replace(tokens_NT=tokens_NT)

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

        def draw(trial: Trial, sampler: Sampler) -> Batch:
            generator = sampler.generator("train", trial.data_seed, number)
            longest_N = _longest_in_block(trial, number * STEPS_PER_BLOCK) if trial.curriculum else None
            num_samples = STEPS_PER_BLOCK * trial.batch_size
            drawn = sampler.draw(generator, num_samples, trial.min_inputs, trial.max_inputs, longest_N)
            return sampler.label(drawn, trial.label_interval)

        stacked = (
            torch.stack([torch.unflatten(part, 0, (STEPS_PER_BLOCK, -1)) for part in parts], 1)
            for parts in _parts(self._per_trial(draw))
        )
        return Block(number * STEPS_PER_BLOCK, *stacked)


class FixedSet(TrainingData):
    """A training set of fixed size, drawn once, and visited in a new order at every epoch.

    An epoch is one block, or two if its last batch is smaller than the others.
    """

    def __init__(self, trials: Sequence[Trial], *samplers: Sampler):
        super().__init__(trials, *samplers)
        self.samples = self._per_trial(_draw_set)
        self._epoch: tuple[int, list[Tensor]] | None = None

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
        sets = {(trial.task, trial.data_seed): its for trial, its in zip(self._trials, self.samples, strict=True)}

        def shuffle(trial: Trial, sampler: Sampler) -> Batch:
            samples, generator = sets[trial.task, trial.data_seed], sampler.generator("epoch", trial.data_seed, number)
            order = torch.randperm(len(samples.target_N), generator=generator, device=sampler.device)
            return Batch(*(part[order] for part in samples))

        return [torch.stack(parts) for parts in _parts(self._per_trial(shuffle))]


def longest_inputs(trial: Trial, step: int) -> int:
    """Return the most inputs of a training sample in a step, from 0: under a curriculum it grows linearly.

    It begins at `min_inputs` and reaches `max_inputs` when that share of the steps is over.
    """
    growing = trial.curriculum * trial.steps
    if step >= growing:
        return trial.max_inputs
    return trial.min_inputs + math.floor((trial.max_inputs - trial.min_inputs + 1) * step / growing)


def _longest_in_block(trial: Trial, first: int) -> Tensor:
    """Return the most inputs of each sample in the steps of a block."""
    by_step = [longest_inputs(trial, step) for step in range(first, first + STEPS_PER_BLOCK)]
    return torch.tensor(by_step).repeat_interleave(trial.batch_size)


def _draw_set(trial: Trial, sampler: Sampler) -> Batch:
    """Draw the fixed training set of a trial."""
    generator = sampler.generator("training set", trial.data_seed)
    if trial.balanced:
        drawn = sampler.draw_balanced(generator, trial.train_examples, trial.max_inputs)
    else:
        drawn = sampler.draw(generator, trial.train_examples, trial.min_inputs, trial.max_inputs)
    return sampler.label(drawn, trial.label_interval)


def _parts(batches: Sequence[Batch]) -> list[tuple[Tensor, ...]]:
    return list(zip(*batches, strict=True))
