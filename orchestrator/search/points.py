"""Points as units for the driver, and the listener that provides them. Imports no Ray."""

from dataclasses import dataclass, field
from typing import Protocol

from orch.running.units import Listener, Unit
from orch.search.history import Point


@dataclass
class PointUnit(Unit):
    """A point as a unit of work: those of its trials that have no result."""

    point: Point = field(default_factory=lambda: Point(0, {}))
    known: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """Step and validation accuracy of each of its trials that had a result before."""
    result_path: str = ""
    """The path in the store of its result."""
    steps: dict[str, int] = field(default_factory=dict)
    """The training step of each trial."""
    begun: dict[str, int] = field(default_factory=dict)
    """The training step of each trial when its worker started."""
    validations: dict[int, float] = field(default_factory=dict)
    """Validation accuracy of the point by training step."""
    reason: str = ""
    """The reason for pruning it; empty if it is not pruned."""


class Points(Listener, Protocol):
    """Provides the points of a search and receives their results. It must not raise anything but `OrchError`."""

    def next_point(self) -> PointUnit | None:
        """Return the next point to train; None if there is none for now."""
        ...

    def nothing_left(self) -> bool:
        """Return whether no point will follow those that are under way."""
        ...

    def pointless(self, unit: PointUnit) -> str:
        """Return why training the point further is useless; empty if it is not."""
        ...

    def ended(self, unit: PointUnit, pruned: bool) -> None:
        """Record the result of a point that has finished or was pruned."""
        ...
