"""Agreement of two computations that should differ by rounding only.

Each operation of single precision is off by at most the unit roundoff. A recurrence repeats its operations at every
position, so its error grows with the length of the sequence. What a position adds depends on the width and on how the
sums are ordered, which `FACTOR` stands for. Gradients of healthy devices stay below 14 units of roundoff times length:
that is the most with noise of two units in the last place after every operation, for all models at widths 64 and 256.
So `FACTOR` allows about twenty times the error of a healthy device, which is about a fiftieth of an error of 1%.
"""

import math

import torch
from torch import Tensor

from orch.models.wrapped_module import State
from orch.running.doctor.finding import Failed

UNIT_ROUNDOFF = 2.0**-24
FACTOR = 256
ZERO = 1e-9
"""Size of a gradient, relative to the largest one, below which it counts as zero."""


def rounding(num_tokens: int) -> float:
    """Return the largest relative difference that rounding may make in a loss or a gradient."""
    return FACTOR * UNIT_ROUNDOFF * num_tokens


class Agreement:
    """The largest of many relative differences, by the share of it that rounding explains."""

    def __init__(self, allowed: float):
        """Allow relative differences of this size."""
        self._allowed = allowed
        self._largest, self._where = 0.0, ""

    def note(self, what: str, difference: float) -> None:
        """Take note of a relative difference."""
        difference = math.inf if math.isnan(difference) else difference
        if difference > self._largest:
            self._largest, self._where = difference, what

    def compare(self, what: str, found: Tensor, expected: Tensor, scale: float = 0.0) -> None:
        """Compare tensors in the Euclidean norm, relative to `scale` or to the size of the expected one."""
        difference = float((found.cpu().double() - expected.cpu().double()).norm())
        scale = scale or float(expected.double().norm())
        self.note(what, difference / scale if scale else difference)

    def compare_losses(self, when: str, found: float, expected: float) -> None:
        """Compare the losses of one trial."""
        self.note(f"the loss {when}", abs(found - expected) / abs(expected))

    def compare_gradients(self, when: str, found: State, expected: State) -> None:
        """Compare the gradients of one trial, parameter by parameter.

        A gradient that is zero in exact arithmetic, such as that of a bias before a normalisation, consists of rounding
        errors only. It is measured by the largest gradient.
        """
        sizes = {name: float(gradient.double().norm()) for name, gradient in expected.items()}
        largest = max(sizes.values())
        for name, size in sizes.items():
            scale = size if size > ZERO * largest else largest
            self.compare(f"the gradient of {name} {when}", found[name], expected[name], scale)

    def verdict(self, other: str, remedy: str = "do not train on this device") -> str:
        """Return how far the two are apart, or raise `Failed` if rounding does not explain it."""
        if self._largest > self._allowed:
            raise Failed(
                f"{self._where} differs by {self._largest:.1e} from {other}, and rounding explains at most"
                f" {self._allowed:.1e}: {remedy}"
            )
        if self._largest == 0:
            return f"bit for bit those of {other}"
        return f"within {self._largest:.1e} of {other}; rounding explains up to {self._allowed:.1e}"


def same_bits(one: State, other: State) -> bool:
    """Return whether two states have the same names and the same numbers, bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name].cpu(), other[name].cpu()) for name in one)
