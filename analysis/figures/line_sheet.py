"""A sheet of lines as data: panels in rows and columns, before anything is drawn.

`sheet.py` draws it for print and `panels.py` for a page, so both show the same lines at the same places.
"""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orch.analysis.figures.line import Line
from orch.models.look import Look


class Metric(enum.StrEnum):
    """The vertical axis of a row of panels."""

    ACCURACY = "accuracy"
    """From chance, 0, to perfect, 1."""
    SHARE = "share of seeds"
    """From none, 0, to all, 1."""
    LOSS = "loss"
    """On a logarithmic scale."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SheetRow:
    """A row of panels."""

    label: str
    """What distinguishes the row from others, such as the family of its models; may be empty."""
    panels: Sequence[Sequence[Line]]
    """The lines of each panel, one for each column of the sheet."""
    legend: Mapping[str, Look]
    """The look of each line by its label; empty if the row shares the legend above it."""
    metric: Metric = Metric.ACCURACY


@dataclass(frozen=True, kw_only=True, slots=True)
class LineSheet:
    """Everything that a sheet of lines shows."""

    title: str
    x_label: str
    columns: Sequence[str]
    """Heading of each column."""
    rows: Sequence[SheetRow]
    limits: tuple[float, float]
    """Ends of the horizontal, logarithmic axis."""
    ticks: Mapping[float, str]
    """Labels of that axis by their place."""
    shaded_to: float | None = None
    """End of a grey background that begins at the left."""
    marker_every: int = 1
    """One in so many points has a marker."""
    bands: bool = True
    """Whether the range of the seeds is shown."""
    height: float = 1.4
    """Height of a panel in print, in inches."""

    def lines(self, metric: Metric) -> list[Line]:
        """Return every line of the rows with a metric."""
        return [line for row in self.rows if row.metric is metric for panel in row.panels for line in panel]

    @property
    def loss_range(self) -> tuple[float, float]:
        """The least and the largest loss."""
        losses = self.lines(Metric.LOSS)
        return min(float(line.mean.min()) for line in losses), max(float(line.mean.max()) for line in losses)


def by_heading(lines: Iterable[Line], columns: Sequence[str]) -> list[list[Line]]:
    """Divide the lines of a row among columns, by the heading of their task."""
    found = list(lines)
    return [[line for line in found if line.task.heading == heading] for heading in columns]


def legend_of(lines: Iterable[Line]) -> dict[str, Look]:
    """Return the look of each line by its label."""
    return {line.label: line.look for line in lines}
