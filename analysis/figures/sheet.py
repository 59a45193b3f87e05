"""A sheet of small panels: a column for each modulus of a task, a row for each family of models with its legend beside
it. Sizes are inches on paper."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orch.analysis.figures.line import Line
from orch.analysis.figures.style import Look
from orch.analysis.names import task_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.5
"""Of a figure that fills a page."""
_LEFT, _TOP, _BOTTOM = 0.75, 0.5, 0.45
_BETWEEN_COLUMNS, _BETWEEN_ROWS = 0.16, 0.18
_WIDEST_PANEL = 2.2
_LEGEND_LINE, _LETTER, _LEGEND_SAMPLE = 0.165, 0.062, 0.55
TITLE_LETTER = 0.095
"""The width of a letter of a figure's title."""

_BILINEAR, _OTHERS = "Bilinear models", "Other models"
_BILINEAR_MODELS = ("bilinear", "factored", "block_diagonal", "rotation")


@dataclass(frozen=True, slots=True)
class Sheet:
    figure: "Figure"
    panels: "list[list[Axes]]"
    """By row, then by column."""


def families(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """The rows of a sheet: fifteen lines in one panel could not be told apart."""
    rows: dict[str, list[Line]] = {_BILINEAR: [], _OTHERS: []}
    for line in lines:
        rows[_BILINEAR if line.model in _BILINEAR_MODELS else _OTHERS].append(line)
    return {name: row for name, row in rows.items() if row}


def moduli(lines: Iterable[Line]) -> list[int]:
    """The columns of a sheet."""
    return sorted({line.task.modulus for line in lines})


def column_names(lines: Sequence[Line]) -> list[str]:
    parity = "modular_addition", 2
    pairs = [(lines[0].task.name, modulus) for modulus in moduli(lines)]
    return [task_name(*pair) if pair == parity else f"m = {pair[1]}" for pair in pairs]


def legend_of(lines: Iterable[Line]) -> dict[str, Look]:
    return {line.label: line.look for line in lines}


def make_sheet(
    title: str, x_label: str, columns: Sequence[str], legends: Sequence[Mapping[str, Look]], height: float = 1.4
) -> Sheet:
    """One row of panels for each legend, which may be empty: then the legend above is for both."""
    from matplotlib.figure import Figure

    right = max(_LEGEND_SAMPLE + _LETTER * max(map(len, legend), default=0) for legend in legends)
    gaps = (len(columns) - 1) * _BETWEEN_COLUMNS
    panel = min((WIDTH - _LEFT - right - gaps) / len(columns), _WIDEST_PANEL)
    used = _LEFT + len(columns) * panel + gaps
    width = max(used + right, TITLE_LETTER * len(title))
    tall = max(height, *(_LEGEND_LINE * len(legend) for legend in legends))
    total = _TOP + _BOTTOM + len(legends) * (tall + _BETWEEN_ROWS) - _BETWEEN_ROWS
    figure = Figure(figsize=(width, total))
    figure.suptitle(title, x=0.08 / width, y=1 - 0.08 / total, ha="left", va="top")
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
