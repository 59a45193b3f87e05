"""A training step that was taken, known by the states before and after it, so that it may be a recorded one."""

import functools
from dataclasses import dataclass

from torch import Tensor

from orch.models.wrapped_module import State
from orch.running.doctor.agreement import UNIT_ROUNDOFF, Agreement
from orch.training.adam import BETA1, BETA2, EPSILON
from orch.training.train import Snapshot, Training

ROUNDING_OF_UPDATE = 16 * UNIT_ROUNDOFF
"""Error that rounding may make in an update of Adam, which is some ten operations, relative to weight and change."""


@dataclass(frozen=True)
class TakenStep:
    """A step of one trial."""

    before: Snapshot
    after: Snapshot
    loss: float

    @functools.cached_property
    def gradients(self) -> State:
        """The gradients that the optimiser was given, computed back from its first moments."""
        return {
            name: (_exact(after) - BETA1 * _exact(self.before.first[name])) / (1 - BETA1)
            for name, after in self.after.first.items()
        }

    def compare_update(self, moments: Agreement, weights: Agreement) -> None:
        """Compare second moments with what follows from the gradients, and weights with what follows from both moments.

        The weights are compared one by one. So a wrong learning rate, step or moment shows in any of them, and
        gradients that differ by rounding do not.
        """
        step, rate = self.after.step, self.after.trial.learning_rate
        for name, gradient in self.gradients.items():
            first, second = _exact(self.after.first[name]), _exact(self.after.second[name])
            expected = BETA2 * _exact(self.before.second[name]) + (1 - BETA2) * gradient**2
            moments.compare(f"Adam's second moment of {name} in step {step}", second, expected)
            change = rate * first / (1 - BETA1**step) / ((second / (1 - BETA2**step)).sqrt() + EPSILON)
            before, after = (_exact(each.parameters[name]) for each in (self.before, self.after))
            sizes = (before.abs() + change.abs()).clamp_min(1e-30)
            difference = float(((after - (before - change)).abs() / sizes).max())
            weights.note(f"Adam's update of {name} in step {step}", difference)


def take_step(training: Training) -> list[TakenStep]:
    """Take one step of a pack, and return it for each of its trials."""
    positions = range(len(training.members))
    before = [training.snapshot(position) for position in positions]
    training.advance(stop_at=training.step + 1)
    after = [training.snapshot(position) for position in positions]
    return [TakenStep(*each) for each in zip(before, after, training.last_losses(), strict=True)]


def _exact(tensor: Tensor) -> Tensor:
    return tensor.cpu().double()
