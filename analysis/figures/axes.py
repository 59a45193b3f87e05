"""Functions that set up the axes of a panel and add its lines, shared by several figures."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from orch.analysis.figures.line import Line
from orch.analysis.figures.style import FAINT, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TIED = 0.02
"""Least difference between lines that are not almost equal."""
_BETWEEN_TIED = 1.3
"""Distance between stacked lines, in points."""
_BETWEEN_MARKERS = 0.03
"""Distance between markers side by side, in decades of a logarithmic axis."""
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def accuracy_axis(axes: "Axes", lines: Iterable[Line]) -> None:
    """Set up a vertical axis of normalised accuracy, with a dashed line at chance and room for lines below it."""
    lowest = min(line.low.min() for line in lines)
    axes.set_ylim(min(-0.14, lowest - 0.06), 1.16)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.axhline(0, color=SOFT, linewidth=0.6, linestyle=(0, (4, 3)), zorder=0)
    for level in (0.5, 1):
        axes.axhline(level, color=FAINT, linewidth=0.5, zorder=0)


def loss_axis(axes: "Axes", least: float, most: float) -> None:
    """Set up a vertical, logarithmic axis of losses."""
    from matplotlib.ticker import NullLocator

    low, high = math.floor(math.log10(max(least, 1e-6))), math.log10(min(max(most, 1e-5), 1e2))
    powers = range(low, math.floor(high) + 1)
    shown = [power for power in powers if power % 2 == 0 or len(powers) < 4]
    axes.set_yscale("log")
    axes.set_ylim(10.0**low, 2 * 10**high)
    axes.set_yticks([10.0**power for power in shown], [f"10{str(power).translate(_RAISED)}" for power in shown])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color=FAINT, linewidth=0.5)


def logarithmic_axis(axes: "Axes", limits: tuple[float, float], ticks: dict[float, str]) -> None:
    """Set up a horizontal, logarithmic axis with exactly these ticks."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    axes.set_xlim(*limits)
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.xaxis.set_minor_locator(NullLocator())


def short(number: float) -> str:
    """Abbreviate thousands.

    >>> short(300), short(1000), short(10_000)
    ('300', '1k', '10k')
    """
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def add_lines(axes: "Axes", lines: Sequence[Line], every: int = 1, stack: bool = True, band: bool = True) -> None:
    """Add lines to a panel with a logarithmic axis; one in `every` points has a marker.

    Lines that are almost equal are stacked above the first of them, and markers at the same place stand side by side,
    so that none hides another.
    """
    from matplotlib.transforms import ScaledTranslation

    inches = axes.figure.dpi_scale_trans
    places = _places(lines) if stack else [0] * len(lines)
    for position, (line, place) in enumerate(zip(lines, places, strict=True)):
        aside = 10 ** (_BETWEEN_MARKERS * (position - (len(lines) - 1) / 2)) if every == 1 else 1.0
        marked = (position * every // len(lines), every)
        raised = axes.transData + ScaledTranslation(0, place * _BETWEEN_TIED / 72, inches)
        if band and (line.high > line.low).any():
            filled: dict[str, Any] = {"color": line.look.colour, "alpha": 0.16, "linewidth": 0, "transform": raised}
            axes.fill_between(line.x * aside, line.low, line.high, **filled)
        axes.plot(line.x * aside, line.mean, markevery=marked, transform=raised, **line.look.line_settings)


def _places(lines: Sequence[Line]) -> list[int]:
    """Count, for each line, the earlier lines that it is almost equal to."""
    return [sum(_tied(line, earlier) for earlier in lines[:number]) for number, line in enumerate(lines)]


def _tied(one: Line, other: Line) -> bool:
    return len(one.x) == len(other.x) and bool(np.all(np.abs(one.mean - other.mean) < _TIED))
