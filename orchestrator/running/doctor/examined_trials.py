"""The trials that are examined: packs of a small size and of the published one."""

import dataclasses
from typing import Any

from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.trial import Trial, make_trial

LEARNING_RATES = (1e-3, 1e-4, 1e-5)
LONGEST = 20_000
"""Number of steps without a validation, more than any check takes."""


def small(name: str, definitions: Definitions = BUILT_IN_DEFINITIONS, **settings: Any) -> Trial:
    """Make a trial of a model that is fast on any machine."""
    return published(name, definitions, **{"width": 64, **definitions.models[name].small_settings, **settings})


def published(name: str, definitions: Definitions = BUILT_IN_DEFINITIONS, **settings: Any) -> Trial:
    """Make a trial of a model with its default settings, which are those of the paper."""
    few: dict[str, Any] = {"steps": LONGEST, "eval_every": LONGEST, "validation_samples": 64, "test_samples": 64}
    few |= {"test_length": 20, "curve_lengths": (20,)}
    return make_trial("modular_addition", name, definitions, modulus=5, **few, **settings)


def pack_of(trial: Trial, size: int) -> list[Trial]:
    """Return trials like this one with different seeds and three learning rates, as in a sweep."""
    return [
        dataclasses.replace(
            trial, init_seed=place, data_seed=place, learning_rate=LEARNING_RATES[place % len(LEARNING_RATES)]
        )
        for place in range(size)
    ]
