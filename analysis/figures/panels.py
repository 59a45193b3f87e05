"""A sheet of lines for a page: small panels that wrap to the width of the screen, as HTML with SVG in it.

Text stays text, of a size that can be read on a phone. Colours are those of print, darkened where they are too pale for
a white page; the page's styles invert them for readers who prefer a dark one.
"""

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import escape

from orch.analysis.figures.axes import (
    accuracy_limits,
    labels_that_fit,
    loss_limits,
    loss_ticks,
    marked_places,
    shared_bands,
)
from orch.analysis.figures.line import Array, Line
from orch.analysis.figures.line_sheet import LineSheet, Metric, SheetRow
from orch.analysis.figures.marker_shapes import SHAPES
from orch.analysis.figures.style import FAINT, SOFT
from orch.analysis.tables.colour import GRAPHICS, darkened
from orch.models.look import Look

WIDTH, HEIGHT = 190, 132
"""Size of a panel, in units that are about a pixel on a phone."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 30, 4, 17, 17
_FINE = 2
"""Steps in a unit to which lines are rounded, because a page of many lines must stay small."""
_MARKER = _FINE * 9
"""Size of a marker, in these steps."""
LINE_CONTRAST = GRAPHICS + 0.7
"""Contrast of the palest line with a white page; inverted, for a dark page, it has a little less."""
_LETTER = 6.5
"""Width of a digit of a tick's label."""
_ACCURACY_TICKS = {0.0: "0", 0.5: "0.5", 1.0: "1"}


def render_panels(sheet: LineSheet, name: str) -> str:
    """Write a sheet as HTML; `name` makes its ids differ from those of other sheets."""
    shown = [look for row in sheet.rows for panel in row.panels for look in (line.look for line in panel)]
    short = f"k{zlib.crc32(name.encode()):x}"
    markers = {look: f"{short}-{place}" for place, look in enumerate(dict.fromkeys(shown))}
    defined = "".join(_marker(look, marker) for look, marker in markers.items())
    rows = "".join(_row(sheet, row, markers) for row in sheet.rows)
    return f'<div class="sheet"><svg class="markers" aria-hidden="true"><defs>{defined}</defs></svg>{rows}</div>'


def line_colour(look: Look) -> str:
    """Return the colour of a line on a white page, dark enough to be seen."""
    return darkened(look.colour, LINE_CONTRAST)


def _marker(look: Look, name: str) -> str:
    corners = " ".join(f"{x:.2f},{y:.2f}" for x, y in SHAPES.get(look.marker, SHAPES["o"]))
    colour = line_colour(look)
    size = f'viewBox="-1.5 -1.5 3 3" markerWidth="{_MARKER}" markerHeight="{_MARKER}" markerUnits="userSpaceOnUse"'
    fill = colour if look.filled else "#fff"
    shape = f'<polygon points="{corners}" fill="{fill}" stroke="{colour}" stroke-width=".3"/>'
    return f'<marker id="{escape(name)}" {size}>{shape}</marker>'


def _row(sheet: LineSheet, row: SheetRow, markers: Mapping[Look, str]) -> str:
    heading = f"{row.label}: {row.metric}" if row.label else row.metric.capitalize()
    legend = "".join(_legend_item(label, look, markers[look]) for label, look in row.legend.items() if look in markers)
    panels = zip(sheet.columns, row.panels, strict=True)
    frame = _Frame.of(sheet, row.metric)
    drawn = "".join(_panel(frame, name, lines, markers) for name, lines in panels)
    listed = f'<ul class="legend">{legend}</ul>' if legend else ""
    said = f'<p class="row">{escape(heading)} <span class="soft">by {escape(sheet.x_label.lower())}</span></p>'
    return f'{said}{listed}<div class="panels">{drawn}</div>'


def _legend_item(label: str, look: Look, marker: str) -> str:
    sample = f'<path class="line" d="M2 12H30H58" style="marker-mid:url(#{escape(marker)})" {_stroke(look)}/>'
    return f'<li><svg viewBox="0 0 60 24" aria-hidden="true">{sample}</svg>{escape(label)}</li>'


def _stroke(look: Look) -> str:
    dashes = "" if isinstance(look.line, str) else " ".join(f"{_FINE * 1.8 * part:g}" for part in look.line[1])
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'stroke="{line_colour(look)}"{dashed}'


@dataclass(frozen=True, slots=True)
class _Frame:
    """The axes of a panel."""

    sheet: LineSheet
    metric: Metric
    limits: tuple[float, float]
    """Ends of the vertical axis; logarithms of them for a loss."""
    ticks: Mapping[float, str]
    """Labels of the vertical axis by their values."""

    @classmethod
    def of(cls, sheet: LineSheet, metric: Metric) -> "_Frame":
        """Return the axes that all panels of a metric share."""
        if metric is not Metric.LOSS:
            return cls(sheet, metric, accuracy_limits(sheet.lines(metric)), _ACCURACY_TICKS)
        least, most = map(math.log, loss_limits(*sheet.loss_range))
        return cls(sheet, metric, (least, most), loss_ticks(*sheet.loss_range))

    def across(self, x: Array) -> Array:
        """Return the places of values on the horizontal axis."""
        start, end = map(math.log, self.sheet.limits)
        place: Array = _LEFT + (np.log(x) - start) / (end - start) * (WIDTH - _LEFT - _RIGHT)
        return place

    def down(self, y: Array) -> Array:
        """Return the places of values on the vertical axis; what is beyond its ends is at them."""
        least, most = self.limits
        if self.metric is Metric.LOSS:
            y = np.log(np.maximum(y, 1e-12))
        place: Array = _TOP + (most - y) / (most - least) * (HEIGHT - _TOP - _BOTTOM)
        return place.clip(_TOP, HEIGHT - _BOTTOM)

    def background(self) -> Iterator[str]:
        """Yield the shaded part and both axes with their labels."""
        if self.sheet.shaded_to is not None:
            (edge,) = self.across(np.array([min(self.sheet.shaded_to, self.sheet.limits[1])]))
            size = f'width="{edge - _LEFT:.0f}" height="{HEIGHT - _TOP - _BOTTOM}"'
            yield f'<rect x="{_LEFT}" y="{_TOP}" {size} fill="{FAINT}" opacity=".6"/>'
        accuracy = self.metric is not Metric.LOSS
        for text, y in zip(self.ticks.values(), self.down(np.array([*self.ticks])), strict=True):
            look = f'stroke="{SOFT}" stroke-dasharray="4 3"' if accuracy and text == "0" else f'stroke="{FAINT}"'
            yield f'<path d="M{_LEFT} {y:.0f}H{WIDTH - _RIGHT}" stroke-width=".7" {look}/>'
            yield f'<text x="{_LEFT - 4}" y="{y + 3.5:.0f}" class="end">{text}</text>'
        shown = labels_that_fit(self.sheet.ticks, self.sheet.limits, WIDTH - _LEFT - _RIGHT, _LETTER)
        places = self.across(np.array([*self.sheet.ticks], dtype=float))
        for (value, text), x in zip(self.sheet.ticks.items(), places, strict=True):
            if value in shown:
                yield f'<text x="{x:.0f}" y="{HEIGHT - 4}" class="middle">{escape(text)}</text>'


def _panel(frame: _Frame, heading: str, lines: Sequence[Line], markers: Mapping[Look, str]) -> str:
    parts = [f'<text x="{_LEFT}" y="11" class="name">{escape(heading)}</text>', *frame.background()]
    parts.append(f'<g transform="scale({1 / _FINE})" class="line">')
    if frame.sheet.bands:
        parts += [_band(frame, line, colour) for line, colour in shared_bands(lines)]
    for position, line in enumerate(lines):
        parts += _line(frame, line, marked_places(position, lines, frame.sheet.marker_every), markers[line.look])
    parts.append("</g>")
    said = f"{heading}: {frame.metric} by {frame.sheet.x_label.lower()}"
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(said)}">{"".join(parts)}</svg>'


def _band(frame: _Frame, line: Line, colour: str) -> str:
    x = frame.across(line.x)
    edge = np.concatenate([frame.down(line.high), frame.down(line.low)[::-1]])
    outline = path(np.concatenate([x, x[::-1]]), edge)
    fill = darkened(colour, LINE_CONTRAST)
    return f'<path d="{outline}z" fill="{fill}" opacity=".16"/>'


def _line(frame: _Frame, line: Line, marked: Sequence[int], marker: str) -> Iterator[str]:
    """Yield a line and its markers, which are a path of their own."""
    x, y = frame.across(line.x), frame.down(line.mean)
    yield f"<g><title>{escape(line.label)}</title>"
    yield f'<path d="{path(x, y)}" {_stroke(line.look)}/>'
    if len(marked):
        yield f'<path d="{path(x[marked], y[marked])}" style="marker:url(#{escape(marker)})"/>'
    yield "</g>"


def path(x: Array, y: Array) -> str:
    """Return a path through points, as whole steps from one to the next.

    >>> path(np.array([10.0, 20.0, 30.1]), np.array([5.0, 2.5, 2.5]))
    'm20 10 20-5 20 0'
    """
    corners = np.rint(_FINE * np.stack([x, y])).astype(int)
    steps = np.diff(corners, axis=1, prepend=0).T
    return "m" + " ".join(f"{across} {down}" for across, down in steps.tolist()).replace(" -", "-")
