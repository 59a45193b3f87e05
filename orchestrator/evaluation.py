"""Accuracy and loss of a stack of trials on fixed, seeded samples."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from models.network import Network
from orchestrator.trial import Trial
from tasks.sampling import Batch, Sampler

_TOKENS_AT_ONCE = 1 << 17


class EvaluationSets:
    """The samples a trial is measured on: drawn on the CPU, so that every device sees the same."""

    def __init__(self, trial: Trial, device: torch.device):
        self._trial, self._device = trial, device
        self._sampler = Sampler(trial.task)
        self.validation = self._draw("validation", trial.validation_samples, trial.min_inputs, trial.max_inputs)

    def of_length(self, length: int) -> Batch:
        return self._draw(f"test {length}", self._trial.test_samples, length, length)

    def _draw(self, name: str, num_samples: int, shortest: int, longest: int) -> Batch:
        generator = self._sampler.generator(name, self._trial.eval_seed)
        drawn = self._sampler.draw(generator, num_samples, shortest, longest)
        return Batch(*(part.to(self._device) for part in drawn))


class Score(NamedTuple):
    """Of one trial; `accuracy` is the plain share of right answers."""

    loss: float
    accuracy: float


def evaluate(network: Network, batch: Batch) -> list[Score]:
    """One score per stacked trial. The only place, with checkpoints, where training waits for the device."""
    losses_K = torch.zeros(network.num_trials, dtype=torch.float64, device=batch.target_N.device)
    right_K = torch.zeros_like(losses_K)
    was_training = network.training
    network.eval()
    with torch.no_grad():
        for part in _in_parts(batch):
            tokens_KBT = part.tokens_NT.expand(network.num_trials, -1, -1)
            logits_KBV = network(tokens_KBT, part.end_N.expand(network.num_trials, -1))
            target_KB = part.target_N.expand(network.num_trials, -1)
            losses_K += per_trial_loss(logits_KBV, target_KB).double().sum(1)
            right_K += (logits_KBV.argmax(-1) == target_KB).double().sum(1)
    network.train(was_training)
    count = len(batch.target_N)
    return [Score(loss / count, right / count) for loss, right in zip(losses_K.tolist(), right_K.tolist(), strict=True)]


def per_trial_loss(logits_KBV: Tensor, target_KB: Tensor) -> Tensor:
    """Cross-entropy of every sample, (K, B)."""
    return cross_entropy(logits_KBV.flatten(0, 1), target_KB.flatten(), reduction="none").view(target_KB.shape)


def _in_parts(batch: Batch) -> Iterable[Batch]:
    """Long sequences go in parts, so that models which hold all positions at once fit in memory."""
    rows = max(64, _TOKENS_AT_ONCE // batch.tokens_NT.shape[1])
    return (Batch(*parts) for parts in zip(*(part.split(rows) for part in batch), strict=True))
