"""Validation accuracy of a point as a whole, by training step. Points are compared by it while they train."""

import math
from collections.abc import Mapping, Sequence

from orch.search.objective import Objective

Curve = Sequence[tuple[int, float]]
"""Step and validation accuracy of one trial, in order."""


def combined(curves: Sequence[Curve], objective: Objective, up_to: float = math.inf) -> list[tuple[int, float]]:
    """Combine the curves of the seeds: step and aggregated accuracy, from the first step that every seed has.

    A seed that has ended counts with its last accuracy. `up_to` is the step of the slowest seed that has not ended.
    """
    if not curves or not all(curves):
        return []
    first = max(curve[0][0] for curve in curves)
    steps = sorted({step for curve in curves for step, _ in curve if first <= step <= up_to})
    found = []
    for step in steps:
        values = [next(value for at, value in reversed(curve) if at <= step) for curve in curves]
        found.append((step, objective.over([0.0 if math.isnan(value) else value for value in values])))
    return found


def at_rungs(validations: Mapping[int, float], rungs: Sequence[int], has_ended: bool) -> list[tuple[int, float]]:
    """Return the accuracy of a point at each rung it reached and at its last validation.

    A point that has ended counts at later rungs with its last accuracy.
    """
    if not validations:
        return []
    last = max(validations)
    found = []
    for rung in rungs:
        after = min((step for step in validations if step >= rung), default=None)
        if after is not None or has_ended:
            found.append((rung, validations[last if after is None else after]))
    if not found or found[-1][0] < last:
        found.append((last, validations[last]))
    return found
