"""Figure: the angle by which the rotation model turns each plane of its state, for every input of modular addition.

The planes are those that the readout weighs most. A model that adds modulo m turns a plane by a multiple of 2 pi / m
for the input 1, its harmonic, and by that many times as much for every other input.
"""

import functools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from orch.analysis.angles import Array, Rotations, read_rotations
from orch.analysis.board import Board
from orch.analysis.figures.figure import Drawing, NothingToDraw, ReportFigure, require_results
from orch.analysis.figures.sheet import WIDTH
from orch.analysis.figures.style import FAINT, INK, SOFT, styled, titled_figure
from orch.analysis.tables.entries import decimals
from orch.sweeps.measured import measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "{task}: rotation angles and their harmonics"
NUM_PLANES, NUM_COLUMNS = 12, 6
_TOP, _PANEL_TITLE, _KEY = 0.36, 0.36, 0.4
_INNERMOST = 0.22


def caption(rotations: Rotations, trial_id: str, accuracy: float | None) -> str:
    """Describe the figure of a trial's rotations."""
    modulus, num_planes = rotations.angles_mP.shape
    tested = "not tested" if accuracy is None else f"with an accuracy of {accuracy:.2f} at the length of the test"
    return (
        "The angle by which each input turns a plane of the state: a dot for each input, the larger the further out;"
        f" spokes are multiples of 2π/{modulus}. Shown are {min(NUM_PLANES, num_planes)} of {num_planes} planes, those"
        " with the largest weights in the readout first. The harmonic is the angle of the input 1 in units of"
        f" 2π/{modulus}. Trial {trial_id}, {tested}."
    )


@styled()
def draw(rotations: Rotations, title: str) -> "Figure":
    """Draw a panel for each of the planes that the readout weighs most."""
    num_inputs, num_planes = rotations.angles_mP.shape
    shown = min(NUM_PLANES, num_planes)
    num_columns = min(NUM_COLUMNS, shown)
    num_rows = math.ceil(shown / num_columns)
    side = WIDTH / NUM_COLUMNS
    width, height = max(num_columns * side, 4.0), _TOP + num_rows * (side + _PANEL_TITLE) + _KEY
    figure = titled_figure(title, width, height)
    for plane in range(shown):
        row, column = divmod(plane, num_columns)
        bottom = height - _TOP - (row + 1) * (side + _PANEL_TITLE)
        axes = figure.add_axes((column * side / width, bottom / height, side / width, side / height))
        _add_plane(axes, rotations.angles_mP[:, plane])
        harmonic = decimals(float(rotations.harmonics_P[plane]))
        axes.set_title(f"harmonic {harmonic}\nweight {rotations.weights_P[plane]:.2f}", pad=0)
    _add_key(figure.add_axes((0.25, 0, 0.5, _KEY / height)), num_inputs)
    return figure


def _add_plane(axes: "Axes", angles: Array) -> None:
    num_inputs = len(angles)
    axes.set(xlim=(-1.12, 1.12), ylim=(-1.12, 1.12), aspect="equal")
    axes.set_axis_off()
    spokes = 2 * np.pi * np.arange(num_inputs) / num_inputs
    ends = np.array([0, 1.06])
    axes.plot(np.outer(ends, np.cos(spokes)), np.outer(ends, np.sin(spokes)), color=FAINT, linewidth=0.6)
    radius = np.linspace(_INNERMOST, 0.98, num_inputs)
    x, y = radius * np.cos(angles), radius * np.sin(angles)
    axes.plot(x, y, color=SOFT, linewidth=0.5, alpha=0.5)
    axes.scatter(x, y, **_dots(num_inputs))


def _dots(num_inputs: int) -> dict[str, Any]:
    numbers = range(num_inputs)
    return {"c": numbers, "cmap": "cividis", "s": 26, "edgecolors": INK, "linewidths": 0.5, "zorder": 3}


def _add_key(axes: "Axes", num_inputs: int) -> None:
    """Add the key of the dots: the colour of each input."""
    axes.set_axis_off()
    axes.set(xlim=(-1, num_inputs), ylim=(-2.2, 1))
    axes.scatter(range(num_inputs), [0] * num_inputs, **_dots(num_inputs))
    axes.annotate("input", (-1, 0), ha="right", va="center")
    for number in range(0, num_inputs, math.ceil(num_inputs / 12)):
        axes.annotate(str(number), (number, -0.9), ha="center", va="top")


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    require_results(board, sweep)
    cell = next(each for each in board.cells(sweep) if each.finished)
    if (best := board.best_with_weights(cell)) is None:
        raise NothingToDraw(f"no trial of {sweep} with the chosen learning rate has kept its weights")
    row, weights = best
    task = cell.cell.example.task
    rotations = read_rotations(weights, task.modulus, f"the file of weights of trial {row['trial_id']}")
    title = TITLE.format(task=task.title_of(task.modulus))
    text = caption(rotations, row["trial_id"], measured(row, "ood_accuracy"))
    yield Drawing(sweep, title, text, sweep, functools.partial(draw, rotations, title))


FIGURE = ReportFigure(drawings=_drawings, sweeps=frozenset({"angles"}))
