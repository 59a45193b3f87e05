"""A line of a panel: one model on one task, with the mean and the range over its seeds."""

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
    """The values of a model on a task along the horizontal axis."""

    task: Task
    family: str
    label: str
    look: Look
    x: Array
    mean: Array
    low: Array
    high: Array


def make_line(cell: PlottedCell, x: ArrayLike, values_per_seed: ArrayLike) -> Line:
    """Build a line from one row of values for each seed."""
    values = np.asarray(values_per_seed, dtype=float)
    return _line(cell, x, values.mean(axis=0), values.min(axis=0), values.max(axis=0))


class LinePoint(NamedTuple):
    """A cell that is one point of a line."""

    cell: PlottedCell
    x: float
    values: Sequence[float]
    """One value for each seed."""


def from_points(points: Iterable[LinePoint]) -> list[Line]:
    """Connect the points that share a task and a label into lines."""
    groups: dict[tuple[Task, str], list[LinePoint]] = {}
    for point in points:
        groups.setdefault((point.cell.task, point.cell.label), []).append(point)
    found = []
    for group in groups.values():
        group.sort(key=lambda point: point.x)
        ranges = zip(*((np.mean(point.values), min(point.values), max(point.values)) for point in group), strict=True)
        found.append(_line(group[0].cell, [point.x for point in group], *ranges))
    return found


def lines_by_task(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Group lines by the name of their task."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.task.name, []).append(line)
    return found


def _line(cell: PlottedCell, x: ArrayLike, mean: ArrayLike, low: ArrayLike, high: ArrayLike) -> Line:
    arrays = (np.asarray(values, dtype=float) for values in (x, mean, low, high))
    return Line(cell.task, cell.trial.model.family, cell.label, cell.look, *arrays)
