"""Agreement of two computations that should differ by rounding only."""

import math
from typing import NamedTuple

from orch.models.wrapped_module import State
from orch.running.doctor.finding import Failed
from orch.running.doctor.rounding import Rounding, size


class Computed(NamedTuple):
    """A trial's loss on a batch, and the gradients."""

    loss: float
    gradients: State


class Agreement:
    """The relative difference, among many, that rounding explains worst."""

    def __init__(self) -> None:
        self._share, self._difference, self._allowed, self._what = 0.0, 0.0, 0.0, ""

    def note(self, what: str, difference: float, allowed: float) -> None:
        """Take note of a relative difference, and of the one that rounding explains."""
        share = math.inf if math.isnan(difference) else difference / allowed
        if share > self._share or not self._what:
            self._share, self._difference, self._allowed, self._what = share, difference, allowed, what

    def compare(self, when: str, found: Computed, expected: Computed, rounding: Rounding) -> None:
        """Compare the loss and each gradient."""
        difference = abs(found.loss - expected.loss) / abs(expected.loss)
        self.note(f"the loss {when}", difference, rounding.of_loss())
        for name, gradient in expected.gradients.items():
            difference = size(found.gradients[name].double() - gradient.double()) / rounding.scales[name]
            self.note(f"the gradient of {name} {when}", difference, rounding.of_gradient(name))

    def verdict(self, other: str, remedy: str = "do not train on this device") -> str:
        """Return how far the two are apart, or raise `Failed` if rounding does not explain it."""
        explained = f"rounding explains up to {self._allowed:.1e}"
        if self._share > 1:
            raise Failed(f"{self._what} differs by {self._difference:.1e} from {other}, and {explained}: {remedy}")
        if self._share == 0:
            return f"bit for bit those of {other}"
        return f"within {self._difference:.1e} of {other}; {explained}"
