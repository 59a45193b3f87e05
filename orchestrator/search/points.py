"""What a search hands to the driver, and whom the driver tells. Knows nothing of Ray."""

from dataclasses import dataclass, field
from typing import Protocol

from orch.running.units import Listener, Work
from orch.search.history import Point


@dataclass
class PointWork(Work):
    """A point as work: those of its trials that have no result."""

    point: Point = field(default_factory=lambda: Point(0, {}))
    known: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """Step and validation accuracy, for each of its trials that were finished before."""
    told_path: str = ""
    """Where in the store it will be said what became of it."""
    steps: dict[str, int] = field(default_factory=dict)
    """How far each trial is."""
    begun: dict[str, int] = field(default_factory=dict)
    """How far each trial was when a worker took it up."""
    validations: dict[int, float] = field(default_factory=dict)
    reason: str = ""
    """Why it is pruned."""


class Points(Listener, Protocol):
    """Where points come from, and who is told what became of them. Must not raise, but for `OrchError`."""

    def next_point(self) -> PointWork | None: ...

    def nothing_left(self) -> bool:
        """Whether no point will come, once those under way are told."""
        ...

    def pointless(self, work: PointWork) -> str:
        """Why there is no use in training it on; empty if there is."""
        ...

    def ended(self, work: PointWork, pruned: bool) -> None: ...
