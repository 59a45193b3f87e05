"""A line of a panel: one model on one task, with the mean and the range over its seeds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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


def make_line(cell: PlottedCell, x: ArrayLike, values: Iterable[Sequence[float] | Array]) -> Line:
    """Build a line from the values of the seeds at each `x`; the number of seeds may differ."""
    mean, low, high = zip(*((np.mean(each), np.min(each), np.max(each)) for each in values), strict=True)
    arrays = (np.asarray(each, dtype=float) for each in (x, mean, low, high))
    return Line(cell.task, cell.trial.model.family, cell.label, cell.look, *arrays)


def lines_by_task(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """Group lines by the name of their task."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.task.name, []).append(line)
    return found
