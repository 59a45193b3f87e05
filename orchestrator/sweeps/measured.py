"""The measured scores of a finished trial, read from its row. A score that was not measured is None, never a number."""

import math
import re
from collections.abc import Mapping
from typing import Any

from orch.sweeps.result import HORIZONS, StopReason, horizon

Row = Mapping[str, Any]
"""A finished trial, with at least the columns that are asked for."""

_AT_LENGTH = re.compile(r"accuracy_([1-9]\d*)")
_ACCURACIES = ("validation_accuracy", "ood_accuracy")
HORIZON_METRICS = {f"horizon_{percent}": percent / 100 for percent in HORIZONS}
"""Level of accuracy of each metric that is a `horizon`."""


def length_of(metric: str) -> int | None:
    """Return the number of inputs that a metric such as `accuracy_100` is measured at; None for other metrics."""
    found = _AT_LENGTH.fullmatch(metric)
    return int(found[1]) if found else None


def measured(row: Row, metric: str) -> float | None:
    """Return a metric of a trial: a column, or `accuracy_` and a number of inputs. None if it was not measured.

    An accuracy that a diverged trial should have but lacks is chance, which is 0: the model answers nothing. A horizon
    is 0 in a trial that was tested and does not hold even at the shortest length.
    """
    if metric in HORIZON_METRICS:
        accuracies = accuracies_by_length(row)
        return float(horizon(accuracies, HORIZON_METRICS[metric]) or 0) if accuracies else None
    if (length := length_of(metric)) is not None:
        return accuracies_by_length(row).get(length)
    value = _finite(row[metric])
    return 0.0 if value is None and metric in _ACCURACIES and diverged(row) else value


def accuracies_by_length(row: Row) -> dict[int, float]:
    """Return the accuracy of a trial at each length that it was measured at, the shortest first."""
    missing = 0.0 if diverged(row) else None
    points = {point["length"]: _finite(point["accuracy"]) for point in row["length_curve"] or ()}
    scores = {length: missing if points[length] is None else points[length] for length in sorted(points)}
    return {length: accuracy for length, accuracy in scores.items() if accuracy is not None}


def diverged(row: Row) -> bool:
    """Return whether the training of a trial diverged."""
    return bool(row["stop_reason"] == StopReason.DIVERGED)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
