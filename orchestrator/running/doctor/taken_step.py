"""A training step that was taken, known by the states before and after it, so that it may be a recorded one."""

import functools
from dataclasses import dataclass

from torch import Tensor

from orch.running.doctor.agreement import Agreement, Computed
from orch.running.doctor.rounding import UNIT_ROUNDOFF, size
from orch.training.adam import BETA1, BETA2, EPSILON
from orch.training.snapshot import Snapshot
from orch.training.train import Training

ROUNDING_OF_MOMENTS = 1e-4
"""Relative error that rounding may make in Adam's second moments. Some implementations compute 1 - 0.999 in single
precision, which is off by 1.3e-5."""
ROUNDING_OF_UPDATE = 32 * UNIT_ROUNDOFF
"""Error that rounding may make in an update of Adam, which is some ten operations, relative to weight and change."""


@dataclass(frozen=True)
class TakenStep:
    """A step of one trial."""

    before: Snapshot
    after: Snapshot
    loss: float

    @functools.cached_property
    def computed(self) -> Computed:
        """The loss, and the gradients that the optimiser was given, computed back from its first moments."""
        gradients = {
            name: (_exact(after) - BETA1 * _exact(self.before.first[name])) / (1 - BETA1)
            for name, after in self.after.first.items()
        }
        return Computed(self.loss, gradients)

    def compare_update(self, agreement: Agreement) -> None:
        """Compare second moments with what follows from the gradients, and weights with what follows from both moments.

        The weights are compared one by one. So a wrong learning rate, step or moment shows in any of them, and
        gradients that differ by rounding do not.
        """
        step, rate = self.after.step, self.after.trial.learning_rate
        for name, gradient in self.computed.gradients.items():
            first, second = _exact(self.after.first[name]), _exact(self.after.second[name])
            expected = BETA2 * _exact(self.before.second[name]) + (1 - BETA2) * gradient**2
            difference = size(second - expected) / (size(expected) or 1.0)
            agreement.note(f"Adam's second moment of {name} in step {step}", difference, ROUNDING_OF_MOMENTS)
            change = rate * first / (1 - BETA1**step) / ((second / (1 - BETA2**step)).sqrt() + EPSILON)
            before, after = (_exact(each.parameters[name]) for each in (self.before, self.after))
            sizes = (before.abs() + change.abs()).clamp_min(1e-30)
            difference = float(((after - (before - change)).abs() / sizes).max())
            agreement.note(f"Adam's update of {name} in step {step}", difference, ROUNDING_OF_UPDATE)


def take_step(training: Training) -> list[TakenStep]:
    """Take one step of a pack, and return it for each of its trials."""
    positions = range(len(training.members))
    before = [training.snapshot(position) for position in positions]
    training.advance(stop_at=training.step + 1)
    after = [training.snapshot(position) for position in positions]
    return [TakenStep(*each) for each in zip(before, after, training.last_losses(), strict=True)]


def _exact(tensor: Tensor) -> Tensor:
    return tensor.cpu().double()
