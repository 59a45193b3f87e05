"""Validation accuracy of a point as a whole, by training step: what points are compared by while they train."""

import math
from collections.abc import Mapping, Sequence

from orch.search.objective import Objective

Curve = Sequence[tuple[int, float]]
"""Step and validation accuracy of one trial, in order."""


def combined(curves: Sequence[Curve], objective: Objective, up_to: float = math.inf) -> list[tuple[int, float]]:
    """Step and accuracy over the seeds, wherever every seed has been validated; one that ended before stays as it
    ended. `up_to` is how far the slowest seed is that has not ended."""
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
    """What a point scored at each rung it came to, and at the last; a point that has ended keeps its last score."""
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
