"""A sheet of small panels: one column for each setting of a task, one row with its legend for each family of models.

Sizes are inches on paper.
"""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orch.analysis.figures.axes import accuracy_axis, add_lines, logarithmic_axis, loss_axis
from orch.analysis.figures.figure import Drawing
from orch.analysis.figures.line import Line
from orch.analysis.figures.line_sheet import LineSheet, Metric
from orch.analysis.figures.panels import render_panels
from orch.analysis.figures.style import FAINT, styled, titled_figure
from orch.models import ModelConfig
from orch.models.look import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.5
"""Width of a figure that fills a page."""
_LEFT, _TOP, _BOTTOM = 0.75, 0.5, 0.45
_BETWEEN_COLUMNS, _BETWEEN_ROWS = 0.16, 0.18
_WIDEST_PANEL = 2.2
_LEGEND_LINE, _LETTER, _LEGEND_SAMPLE = 0.165, 0.062, 0.55
MOST_LINES = 9
"""Most lines in a panel; readers could not tell more apart."""
TITLE_LETTER = 0.095
"""Width of a letter of a figure's title."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A figure and its panels, which are still empty."""

    figure: "Figure"
    panels: "list[list[Axes]]"
    """Axes by row, then by column."""


def families(lines: Iterable[Line]) -> list[tuple[str, list[Line]]]:
    """Group lines by family of models, one row of a sheet for each, or several for a family of many models.

    Models that fit into one panel share it, whatever their families, so that they can be compared. Models without a
    family come last.
    """
    lines = list(lines)
    if 0 < len({line.label for line in lines}) <= MOST_LINES:
        return [("", lines)]
    families: dict[str, list[Line]] = {}
    for line in lines:
        families.setdefault(line.family, []).append(line)
    ordered = sorted(families.items(), key=lambda row: row[0] == ModelConfig.family)
    return [(family, part) for family, members in ordered for part in in_parts(members)]


def row_label(family: str, num_families: int) -> str:
    """Return the label of a row. The only family of a sheet needs no name to tell it from others."""
    return family if num_families > 1 else ""


def in_parts(lines: Sequence[Line]) -> list[list[Line]]:
    """Divide lines into parts of about equal size, none with more labels than can be told apart in a panel."""
    labels = list(dict.fromkeys(line.label for line in lines))
    size = math.ceil(len(labels) / max(1, math.ceil(len(labels) / MOST_LINES)))
    part_of = {label: place // size for place, label in enumerate(labels)}
    return [[line for line in lines if part_of[line.label] == part] for part in sorted(set(part_of.values()))]


def column_names(lines: Iterable[Line]) -> list[str]:
    """Return the heading of each column of a sheet: one for each setting of the tasks, in the tasks' own words."""
    return list(dict.fromkeys(line.task.heading for line in sorted(lines, key=lambda line: line.task.modulus)))


def task_title(title: str, lines: Sequence[Line], sweep: str) -> str:
    """Return the title of a sheet with lines of one task; it names the sweep unless that is clear."""
    task = lines[0].task
    return f"{task.title_of()}: {title}" + ("" if sweep in ("main", task.name) else f" ({sweep})")


@styled()
def draw_sheet(lines: LineSheet) -> "Figure":
    """Draw a sheet of lines for print."""
    legends, labelled = [row.legend for row in lines.rows], any(row.label for row in lines.rows)
    sheet = make_sheet(lines.title, lines.x_label, lines.columns, legends, lines.height)
    for row, panels in zip(lines.rows, sheet.panels, strict=True):
        panels[0].set_ylabel(f"{row.label}\n{row.metric}" if labelled else row.metric)
        for shown, axes in zip(row.panels, panels, strict=True):
            logarithmic_axis(axes, lines.limits, lines.ticks)
            if row.metric is Metric.LOSS:
                loss_axis(axes, *lines.loss_range)
            else:
                accuracy_axis(axes, lines.lines(row.metric))
            if lines.shaded_to is not None:
                axes.axvspan(0.1, lines.shaded_to, color=FAINT, alpha=0.6, linewidth=0, zorder=0)
            add_lines(axes, shown, every=lines.marker_every, band=lines.bands)
    return sheet.figure


def make_sheet(
    title: str, x_label: str, columns: Sequence[str], legends: Sequence[Mapping[str, Look]], height: float = 1.4
) -> Sheet:
    """Lay out one row of panels for each legend. A row with an empty legend shares the legend above it."""
    right = max(_LEGEND_SAMPLE + _LETTER * max(map(len, legend), default=0) for legend in legends)
    gaps = (len(columns) - 1) * _BETWEEN_COLUMNS
    panel = min((WIDTH - _LEFT - right - gaps) / len(columns), _WIDEST_PANEL)
    used = _LEFT + len(columns) * panel + gaps
    width = max(used + right, TITLE_LETTER * len(title))
    tall = max(height, *(_LEGEND_LINE * len(legend) for legend in legends))
    total = _TOP + _BOTTOM + len(legends) * (tall + _BETWEEN_ROWS) - _BETWEEN_ROWS
    figure = titled_figure(title, width, total)
    figure.supxlabel(x_label, x=(_LEFT + used) / 2 / width, y=0.06 / total, va="bottom")
    panels: list[list[Axes]] = []
    for row, legend in enumerate(legends):
        top = total - _TOP - row * (tall + _BETWEEN_ROWS)
        panels.append([])
        for column in range(len(columns)):
            left = _LEFT + column * (panel + _BETWEEN_COLUMNS)
            axes = figure.add_axes((left / width, (top - tall) / total, panel / width, tall / total))
            axes.tick_params(labelleft=column == 0, labelbottom=row == len(legends) - 1)
            panels[row].append(axes)
        if legend:
            _add_legend(figure, legend, (used + 0.14) / width, top / total)
    for axes, name in zip(panels[0], columns, strict=True):
        axes.set_title(name, pad=4)
    return Sheet(figure, panels)


def sheet_drawing(name: str, lines: LineSheet, caption: str, sweep: str) -> Drawing:
    """Return a sheet of lines as a figure of the report, drawn when it is asked for."""
    on_page = functools.partial(render_panels, lines, name)
    return Drawing(name, lines.title, caption, sweep, functools.partial(draw_sheet, lines), on_page)


def _add_legend(figure: "Figure", legend: Mapping[str, Look], left: float, top: float) -> None:
    from matplotlib.lines import Line2D

    samples = [Line2D([], [], label=label, **look.line_settings) for label, look in legend.items()]
    figure.legend(
        handles=samples,
        loc="upper left",
        bbox_to_anchor=(left, top),
        borderaxespad=0,
        borderpad=0,
        handlelength=2.4,
        labelspacing=0.35,
    )
