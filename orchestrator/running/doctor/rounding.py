"""The differences that rounding explains in the loss and the gradients of one trial.

Each operation of single precision is off by at most the unit roundoff u. A recurrence repeats its operations at each of
T positions. And a gradient passes the errors of states on, as it passes on errors of the weights: κ is its relative
change by a relative change of the weights, which is measured in double precision. So a device may be off by

    FACTOR · u · (T + κ)

where `FACTOR` stands for the width and the order of sums. With noise of two units in the last place after every
operation, gradients at width 64 were off by 26.5 u (T + κ) at most, and by 5.9 u (T + κ) without the factored model.
κ was mostly below 60, and up to 360 where a normalisation met a state close to zero. With a batch of 12 tokens and a
small κ this allows 1e-4, a hundredth of an error of 1% in a gradient.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from orch.models.wrapped_module import State

UNIT_ROUNDOFF = 2.0**-24
FACTOR = 128
ZERO = 1e-9
"""Size of a gradient, relative to the largest one, below which it is zero in exact arithmetic. An example is a bias
before a normalisation. It consists of rounding errors, and is measured by the largest gradient."""


@dataclass(frozen=True)
class Rounding:
    """What rounding explains in the gradients of one trial, by parameter."""

    num_tokens: int
    scales: Mapping[str, float]
    """Sizes by which differences are measured."""
    conditions: Mapping[str, float]
    """The κ of each gradient."""

    def of_loss(self) -> float:
        return loss_rounding(self.num_tokens)

    def of_gradient(self, name: str) -> float:
        return FACTOR * UNIT_ROUNDOFF * (self.num_tokens + self.conditions[name])

    def with_moments(self, first: State) -> "Rounding":
        """Return what it explains in gradients that are computed back from first moments, which are rounded too."""
        more = {name: size(moment) / self.scales[name] for name, moment in first.items()}
        return replace(self, conditions={name: self.conditions[name] + each for name, each in more.items()})


def loss_rounding(num_tokens: int) -> float:
    """Return the relative difference that rounding explains in a loss."""
    return FACTOR * UNIT_ROUNDOFF * num_tokens


def find_scales(gradients: State) -> dict[str, float]:
    """Return the sizes by which differences from these gradients are measured."""
    sizes = {name: size(gradient) for name, gradient in gradients.items()}
    largest = max(sizes.values())
    return {name: each if each > ZERO * largest else largest or 1.0 for name, each in sizes.items()}


def size(tensor: Tensor) -> float:
    """Return the Euclidean norm."""
    return float(tensor.double().norm())
