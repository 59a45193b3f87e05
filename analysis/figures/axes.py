"""Functions that set up the axes of a panel and add its lines, shared by several figures."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from orch.analysis.figures.line import Line
from orch.analysis.figures.style import FAINT, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TIED = 0.02
"""Least difference between values whose markers do not hide each other."""
_LETTER = 0.075
"""Width of a digit of a tick's label, in inches."""
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


def logarithmic_axis(axes: "Axes", limits: tuple[float, float], ticks: Mapping[float, str]) -> None:
    """Set up a horizontal, logarithmic axis with exactly these ticks, and the labels for which there is room."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    axes.set_xlim(*limits)
    width = axes.bbox.width / axes.figure.dpi
    shown = labels_that_fit(ticks, limits, width)
    axes.set_xticks(list(ticks), [text if place in shown else "" for place, text in ticks.items()])
    axes.xaxis.set_minor_locator(NullLocator())


def labels_that_fit(ticks: Mapping[float, str], limits: tuple[float, float], width: float) -> set[float]:
    """Return the ticks of a logarithmic axis that have room for a label: the last, the first, then what fits between.

    >>> ticks = {length: str(length) for length in (10, 20, 50, 100, 200, 500)}
    >>> sorted(labels_that_fit(ticks, (5, 1000), 4.0)), sorted(labels_that_fit(ticks, (5, 1000), 1.2))
    ([10, 20, 50, 100, 200, 500], [10, 50, 500])
    """
    inches = width / math.log(limits[1] / limits[0])
    places = list(ticks)
    spans: dict[float, tuple[float, float]] = {}
    for place in [*places[-1:], *places[:1], *places[1:-1]]:
        middle, half = inches * math.log(place / limits[0]), _LETTER * (len(ticks[place]) + 1) / 2
        if all(middle + half <= low or middle - half >= high for low, high in spans.values()):
            spans[place] = middle - half, middle + half
    return set(spans)


def short(number: float) -> str:
    """Abbreviate thousands.

    >>> short(300), short(1000), short(10_000)
    ('300', '1k', '10k')
    """
    return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"


def add_lines(axes: "Axes", lines: Sequence[Line], every: int = 1, band: bool = True) -> None:
    """Add lines to a panel at their true values; one in `every` points has a marker.

    Where lines coincide their markers take turns, so that none hides another and none is moved. A band that several
    lines share is drawn once, in grey: on top of each other they would look like a darker, surer one.
    """
    bands: dict[bytes, list[Line]] = {}
    for line in lines:
        if band and (line.high > line.low).any():
            bands.setdefault(np.stack([line.x, line.low, line.high]).tobytes(), []).append(line)
    for sharing in bands.values():
        first, alone = sharing[0], len(sharing) == 1
        filled: dict[str, Any] = {"color": first.look.colour if alone else SOFT, "alpha": 0.16, "linewidth": 0}
        axes.fill_between(first.x, first.low, first.high, **filled)
    for position, line in enumerate(lines):
        if every > 1:
            marked: Any = (position * every // len(lines), every)
        else:
            marked = [place for place in range(len(line.x)) if _has_turn(position, lines, place)]
        axes.plot(line.x, line.mean, markevery=marked, **line.look.line_settings)


def _has_turn(position: int, lines: Sequence[Line], place: int) -> bool:
    """Return whether a line has its marker at a place, where other lines may have almost the same value."""
    line = lines[position]
    x, value = line.x[place], line.mean[place]
    tied = [
        number for number, other in enumerate(lines) if np.any((other.x == x) & (np.abs(other.mean - value) < _TIED))
    ]
    return tied[place % len(tied)] == position
