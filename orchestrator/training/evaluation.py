"""Accuracy and loss of a stack of trials on fixed, seeded samples."""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from orch.models.network import Network, mean_of_labels
from orch.sweeps.batches import FEWEST_AT_ONCE, TOKENS_AT_ONCE
from orch.sweeps.trial import Trial
from orch.tasks import Task
from orch.tasks.sampling import Batch, Sampler
from orch.training.precision import autocast

_TOKENS_IN_CACHE, _STATES_IN_CACHE = 1 << 13, 1 << 11
"""Sizes that fit in a CPU's cache: tokens of a model that holds all positions at once, samples of a recurrent one."""
_NUMBERS_AT_ONCE = 1 << 23
"""Entries of states that a recurrent model keeps on a CPU, where several places of a sequence are read."""

MOST_ON_A_CPU = 9
"""Trials that are evaluated together on a CPU."""


class EvaluationSets:
    """The samples a trial is evaluated on. They are drawn on the CPU, so that every device sees the same."""

    def __init__(self, trial: Trial, device: torch.device):
        self._trial, self._device = trial, device
        self._sampler = Sampler(trial.task)
        self.validation = self._draw("validation", trial.validation_samples, trial.min_inputs, trial.max_inputs)

    def of_length(self, length: int) -> Batch:
        return self._draw(f"test {length}", self._trial.test_samples, length, length)

    def _draw(self, name: str, num_samples: int, shortest: int, longest: int) -> Batch:
        generator = self._sampler.generator(name, self._trial.eval_seed)
        drawn = self._sampler.draw(generator, num_samples, shortest, longest)
        drawn = self._sampler.label(drawn, self._trial.label_interval)
        return Batch(*(part.to(self._device) for part in drawn))


class Score(NamedTuple):
    """The score of one trial; accuracies are shares of right answers."""

    loss: float
    accuracy: float
    """At the end of each sample."""
    accuracy_all: float | None
    """Mean over samples of the share of right answers at all their labels; None if only the end has one."""


def evaluate(network: Network, batch: Batch) -> list[Score]:
    """Return the score of each stacked trial. Training waits for the device only here and in checkpoints."""
    K, losses, right, right_of_all = network.num_trials, [], [], []
    was_training = network.training
    network.eval()
    with torch.no_grad(), autocast(network):
        for part in _in_parts(batch, network):
            tokens_KBT, end_KB, target_KB = (each.expand(K, *each.shape) for each in part)
            logits_KBV = network(tokens_KBT, end_KB)
            losses.append(network.losses(logits_KBV, target_KB))
            is_right = logits_KBV.argmax(-1).view_as(target_KB) == target_KB
            right.append(is_right if target_KB.dim() == 2 else is_right[..., -1])
            if target_KB.dim() > 2:
                right_of_all.append(mean_of_labels(is_right.double(), target_KB))
    network.train(was_training)
    # Over all samples at once, so that the sum does not depend on the size of the batches.
    means = [torch.cat(parts, dim=1).double().mean(1).tolist() for parts in (losses, right, right_of_all) if parts]
    return [Score(*scores) for scores in itertools.zip_longest(*means, *[[]] * (3 - len(means)))]


def parts_to_evaluate(tasks: Sequence[Task], device: torch.device) -> list[slice]:
    """Return the trials of a stack that are evaluated together: neighbours with the same task, given that of each.

    On a CPU they are at most nine, because more would leave few samples to be treated at once.
    """
    most = MOST_ON_A_CPU if device.type == "cpu" else len(tasks)
    parts, start = [], 0
    for _, alike in itertools.groupby(tasks):
        stop = start + len(list(alike))
        parts += [slice(first, min(first + most, stop)) for first in range(start, stop, most)]
        start = stop
    return parts


def rows_at_once(num_tokens: int, network: Network, device: str, num_places: int = 1) -> int:
    """Return how many samples of this length are evaluated at once, if so many places of each are read."""
    if device != "cpu":
        return max(FEWEST_AT_ONCE, TOKENS_AT_ONCE // (num_tokens * network.num_trials))
    if network.config.holds_positions:
        return max(8, _TOKENS_IN_CACHE // num_tokens)
    if num_places > 1:
        return max(8, _NUMBERS_AT_ONCE // (num_tokens * network.num_trials * int(network.config.width)))
    return max(64, _STATES_IN_CACHE // network.num_trials)


def _in_parts(batch: Batch, network: Network) -> Iterable[Batch]:
    num_places = math.prod(batch.end_N.shape[1:])
    rows = rows_at_once(batch.tokens_NT.shape[1], network, batch.tokens_NT.device.type, num_places)
    return (Batch(*parts) for parts in zip(*(torch.split(part, rows) for part in batch), strict=True))
