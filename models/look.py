"""Colour, marker and line of a model in figures, as plain values that matplotlib accepts."""

from dataclasses import dataclass
from typing import Any

Dashes = tuple[int, tuple[float, ...]]

SOLID = "-"
DOTTED: Dashes = (0, (1, 1.2))
DASHED: Dashes = (0, (3.5, 1.4))
DASH_DOT: Dashes = (0, (4, 1.2, 1, 1.2))


@dataclass(frozen=True, slots=True)
class Look:
    colour: str
    marker: str
    line: str | Dashes = SOLID
    filled: bool = True

    @property
    def line_settings(self) -> dict[str, Any]:
        """Keyword arguments for `Axes.plot`."""
        return {
            "color": self.colour,
            "linestyle": self.line,
            "linewidth": 1.1,
            "marker": self.marker,
            "markersize": 3.8,
            "markerfacecolor": self.colour if self.filled else "white",
            "markeredgecolor": self.colour,
            "markeredgewidth": 0.7,
        }
