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
    axes.set_ylim(*accuracy_limits(lines))
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.axhline(0, color=SOFT, linewidth=0.6, linestyle=(0, (4, 3)), zorder=0)
    for level in (0.5, 1):
        axes.axhline(level, color=FAINT, linewidth=0.5, zorder=0)


def accuracy_limits(lines: Iterable[Line]) -> tuple[float, float]:
    """Return the ends of an axis of accuracies, with room for lines below chance."""
    return min(-0.14, min(float(line.low.min()) for line in lines) - 0.06), 1.16


def loss_axis(axes: "Axes", least: float, most: float) -> None:
    """Set up a vertical, logarithmic axis of losses."""
    from matplotlib.ticker import NullLocator

    ticks = loss_ticks(least, most)
    axes.set_yscale("log")
    axes.set_ylim(*loss_limits(least, most))
    axes.set_yticks([*ticks], [*ticks.values()])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color=FAINT, linewidth=0.5)


def loss_limits(least: float, most: float) -> tuple[float, float]:
    """Return the ends of an axis of losses."""
    return 10.0 ** _lowest_power(least), 2 * min(max(most, 1e-5), 1e2)


def loss_ticks(least: float, most: float) -> dict[float, str]:
    """Return powers of ten within an axis of losses, with their labels.

    >>> loss_ticks(0.002, 3.0)
    {0.01: '10⁻²', 1.0: '10⁰'}
    """
    powers = range(_lowest_power(least), math.floor(math.log10(min(max(most, 1e-5), 1e2))) + 1)
    shown = [power for power in powers if power % 2 == 0 or len(powers) < 4]
    return {10.0**power: f"10{str(power).translate(_RAISED)}" for power in shown}


def _lowest_power(least: float) -> int:
    return math.floor(math.log10(max(least, 1e-6)))


def logarithmic_axis(axes: "Axes", limits: tuple[float, float], ticks: Mapping[float, str]) -> None:
    """Set up a horizontal, logarithmic axis with exactly these ticks, and the labels for which there is room."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log")
    axes.set_xlim(*limits)
    width = axes.bbox.width / axes.figure.dpi
    shown = labels_that_fit(ticks, limits, width)
    axes.set_xticks(list(ticks), [text if place in shown else "" for place, text in ticks.items()])
    axes.xaxis.set_minor_locator(NullLocator())


def labels_that_fit(
    ticks: Mapping[float, str], limits: tuple[float, float], width: float, letter: float = _LETTER
) -> set[float]:
    """Return the ticks of a logarithmic axis that have room for a label: the last, the first, then what fits between.

    The width of the axis and that of a letter are in the same unit, by default inches.

    >>> ticks = {length: str(length) for length in (10, 20, 50, 100, 200, 500)}
    >>> sorted(labels_that_fit(ticks, (5, 1000), 4.0)), sorted(labels_that_fit(ticks, (5, 1000), 1.2))
    ([10, 20, 50, 100, 200, 500], [10, 50, 500])
    """
    inches = width / math.log(limits[1] / limits[0])
    places = list(ticks)
    spans: dict[float, tuple[float, float]] = {}
    for place in [*places[-1:], *places[:1], *places[1:-1]]:
        middle, half = inches * math.log(place / limits[0]), letter * (len(ticks[place]) + 1) / 2
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

    Where lines coincide their markers take turns, so that none hides another and none is moved.
    """
    for line, colour in shared_bands(lines) if band else ():
        filled: dict[str, Any] = {"color": colour, "alpha": 0.16, "linewidth": 0}
        axes.fill_between(line.x, line.low, line.high, **filled)
    for position, line in enumerate(lines):
        axes.plot(line.x, line.mean, markevery=marked_places(position, lines, every), **line.look.line_settings)


def shared_bands(lines: Sequence[Line]) -> list[tuple[Line, str]]:
    """Return a line for each band of a panel, with the colour of the band.

    A band that several lines share is drawn once, in grey: on top of each other they would look like a darker, surer
    one.
    """
    bands: dict[bytes, list[Line]] = {}
    for line in lines:
        if (line.high > line.low).any():
            bands.setdefault(np.stack([line.x, line.low, line.high]).tobytes(), []).append(line)
    return [(same[0], same[0].look.colour if len(same) == 1 else SOFT) for same in bands.values()]


def marked_places(position: int, lines: Sequence[Line], every: int = 1) -> list[int]:
    """Return the points of a line that have a marker: one in `every`, or those where the line has its turn."""
    num_points = len(lines[position].x)
    if every > 1:
        return list(range(position * every // len(lines), num_points, every))
    return [place for place in range(num_points) if _has_turn(position, lines, place)]


def _has_turn(position: int, lines: Sequence[Line], place: int) -> bool:
    """Return whether a line has its marker at a place, where other lines may have almost the same value."""
    line = lines[position]
    x, value = line.x[place], line.mean[place]
    tied = [
        number for number, other in enumerate(lines) if np.any((other.x == x) & (np.abs(other.mean - value) < _TIED))
    ]
    return tied[place % len(tied)] == position
