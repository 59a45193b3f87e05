"""A line of a panel: one model on one task, the mean over its seeds and the range they span."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orch.analysis.figures.plotted_cell import PlottedCell
from orch.models.look import Look
from orch.tasks import Task

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Line:
    task: Task
    family: str
    label: str
    look: Look
    x: Array
    mean: Array
    low: Array
    high: Array


def make_line(entry: PlottedCell, x: ArrayLike, values_per_seed: ArrayLike) -> Line:
    """From one row of values for each seed."""
    values = np.asarray(values_per_seed, dtype=float)
    return _line(entry, x, values.mean(axis=0), values.min(axis=0), values.max(axis=0))


class LinePoint(NamedTuple):
    """A cell that is one point of a line."""

    entry: PlottedCell
    x: float
    values: Sequence[float]
    """One for each seed."""


def from_points(points: Iterable[LinePoint]) -> list[Line]:
    """Points of one task with one label make a line."""
    groups: dict[tuple[Task, str], list[LinePoint]] = {}
    for point in points:
        groups.setdefault((point.entry.task, point.entry.label), []).append(point)
    found = []
    for group in groups.values():
        group.sort(key=lambda point: point.x)
        ranges = zip(*((np.mean(point.values), min(point.values), max(point.values)) for point in group), strict=True)
        found.append(_line(group[0].entry, [point.x for point in group], *ranges))
    return found


def _line(entry: PlottedCell, x: ArrayLike, mean: ArrayLike, low: ArrayLike, high: ArrayLike) -> Line:
    arrays = (np.asarray(values, dtype=float) for values in (x, mean, low, high))
    return Line(entry.task, entry.trial.model.family, entry.label, entry.look, *arrays)
