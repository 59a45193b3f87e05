"""Times of training steps that `orch doctor` measured on a device, compared with the arithmetic. No torch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orch.models import ModelConfig
from orch.planning.step_time import step_seconds
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS
from orch.sweeps.trial import Trial

MOST_TRIALS = 1_000_000
"""Sizes of packs beyond this were not measured by `orch doctor`."""


@dataclass(frozen=True, slots=True)
class DoctorTimes:
    """Measured over computed time of training steps, by size of the pack."""

    ratios: tuple[tuple[int, float], ...]
    """The smallest size first."""

    def ratio(self, size: float) -> float:
        """Return the ratio for a pack of `size`: between two sizes that were timed, in proportion to the logarithm.

        >>> DoctorTimes(((1, 2.0), (4, 1.0))).ratio(2), DoctorTimes(((1, 2.0), (4, 1.0))).ratio(9)
        (1.5, 1.0)
        """
        below = [each for each in self.ratios if each[0] <= size]
        above = [each for each in self.ratios if each[0] > size]
        if not below or not above:
            return (below[-1:] or above[:1])[0][1]
        (low, first), (high, second) = below[-1], above[0]
        share = math.log(size / low) / math.log(high / low)
        return first + share * (second - first)


def find_doctor_times(rates: Mapping[str, Any], key: str, model: type[ModelConfig], device: str) -> DoctorTimes | None:
    """Return what `rates` (a file that `orch doctor` stored) says about a model under `key`; None if nothing.

    The times of packs count, where there are any; older files have the ratio of one trial alone only.
    """
    packs = rates.get("packs", {}).get(key, {})
    # The trial that was timed: the model with its default settings, which is the published size.
    published = Trial(task=BUILT_IN_DEFINITIONS.tasks["modular_addition"](modulus=5), model=model())
    sizes = {int(size): seconds for size, seconds in packs.items() if size.isdecimal() and 0 < int(size) < MOST_TRIALS}
    found = {size: seconds / step_seconds(published, size, device) for size, seconds in sizes.items()}
    if 1 not in found and key in rates["ratios"]:
        found[1] = rates["ratios"][key]
    return DoctorTimes(tuple(sorted(found.items()))) if found else None
