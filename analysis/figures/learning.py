"""Figure: validation loss and accuracy against the training step."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from orch.analysis.aggregate import where_chosen
from orch.analysis.board import Board
from orch.analysis.figures.axes import accuracy_axis, add_lines, logarithmic_axis, loss_axis, short
from orch.analysis.figures.figure import Drawing, NothingToDraw, ReportFigure
from orch.analysis.figures.line import Array, Line, lines_by_task, make_line
from orch.analysis.figures.plotted_cell import PlottedCell, cells_to_plot
from orch.analysis.figures.sheet import column_names, families, legend_of, make_sheet, row_label, task_title
from orch.analysis.figures.style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

COLUMNS = ("trial_id", "step", "validation_loss", "validation_accuracy")
"""Columns needed from the table of curves."""

_MOST_POINTS = 60
"""Most points of a line; readers could not distinguish more."""
_MARKER_EVERY = 20
_LEAST_LOSS = 1e-8

TITLE = "learning curves"
CAPTION = (
    "Validation loss and accuracy (0 is chance, 1 is perfect) against the training step, with the learning rate"
    " chosen {chosen}: the mean over its seeds (of the loss, the geometric mean). A seed that ended before the others"
    " stays where it was."
)


class Curve(NamedTuple):
    """Validation results of one trial, in the order of its steps."""

    steps: Array
    losses: Array
    accuracies: Array


def curves_of(curves: "Table", trial_ids: Iterable[str]) -> dict[str, Curve]:
    """Return the curves of these trials, from a table that may have a million rows. Non-finite values are dropped."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = list(dict.fromkeys(trial_ids))
    number = pc.index_in(curves["trial_id"], pa.array(ids, pa.string()))
    rows = curves.append_column("number", number).filter(pc.is_valid(number))
    names = ("number", *COLUMNS[1:])
    numbers, steps, losses, accuracies = (rows[name].to_numpy().astype(float) for name in names)
    finite = np.isfinite(losses) & np.isfinite(accuracies)
    order = np.lexsort((steps, numbers))
    order = order[finite[order]]
    ends = np.searchsorted(numbers[order], np.arange(len(ids) + 1))
    pieces = zip(ids, ends[:-1], ends[1:], strict=True)
    return {
        trial_id: Curve(*(values[order[start:end]] for values in (steps, losses, accuracies)))
        for trial_id, start, end in pieces
        if start < end
    }


def lines(cells: Iterable[PlottedCell], curves: Mapping[str, Curve]) -> tuple[list[Line], list[Line]]:
    """Return the lines of the loss and those of the accuracy, in the same order."""
    losses, accuracies = [], []
    for cell in cells:
        seeds = [curves[row["trial_id"]] for row in cell.chosen if row["trial_id"] in curves]
        if seeds:
            steps = _few(np.unique(np.concatenate([seed.steps for seed in seeds])))
            values = [np.log(np.maximum(_at(steps, seed.steps, seed.losses), _LEAST_LOSS)) for seed in seeds]
            loss = make_line(cell, steps, np.transpose(values))
            losses.append(replace(loss, mean=np.exp(loss.mean), low=np.exp(loss.low), high=np.exp(loss.high)))
            values = [_at(steps, seed.steps, seed.accuracies) for seed in seeds]
            accuracies.append(make_line(cell, steps, np.transpose(values)))
    return losses, accuracies


def _few(steps: Array) -> Array:
    """Return steps that are about evenly spaced on a logarithmic axis, always with the first and the last."""
    places = np.searchsorted(steps, np.geomspace(steps[0], steps[-1], _MOST_POINTS))
    few: Array = steps[np.unique(places.clip(max=len(steps) - 1))]
    return few


def _at(wanted: Array, steps: Array, values: Array) -> Array:
    """Return the latest value at each wanted step, or the first value for earlier steps."""
    return values[np.maximum(np.searchsorted(steps, wanted, side="right") - 1, 0)]


@styled()
def draw(losses: Sequence[Line], accuracies: Sequence[Line], title: str) -> "Figure":
    """Draw one task: for each family of models a row of losses and a row of accuracies."""
    rows = []
    by_family = families(losses)
    for (family, loss), (_, accuracy) in zip(by_family, families(accuracies), strict=True):
        rows += [(row_label(family, "loss", len(by_family)), loss, legend_of(loss)), ("\naccuracy", accuracy, {})]
    columns = column_names(losses)
    sheet = make_sheet(title, "Training step", columns, [legend for *_, legend in rows], height=1.15)
    first, last = min(line.x[0] for line in losses), max(line.x[-1] for line in losses)
    powers = [power for power in range(8) if first <= 10**power <= last]
    ticks = {10.0**power: short(10**power) for power in powers[:: 1 if len(powers) < 3 else 2]}
    least, most = min(line.mean.min() for line in losses), max(line.mean.max() for line in losses)
    for number, ((name, row, _), panels) in enumerate(zip(rows, sheet.panels, strict=True)):
        panels[0].set_ylabel(name)
        for heading, axes in zip(columns, panels, strict=True):
            logarithmic_axis(axes, (0.8 * first, 1.25 * last), ticks)
            shown = [line for line in row if line.task.heading == heading]
            if number % 2:
                accuracy_axis(axes, accuracies)
            else:
                loss_axis(axes, least, most)
            add_lines(axes, shown, every=_MARKER_EVERY, band=False)
    return sheet.figure


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    cells = cells_to_plot(board, sweep)
    assert board.store is not None, "curves are read from the store of the board"
    table = board.store.read("curves", COLUMNS)
    curves = curves_of(table, (row["trial_id"] for cell in cells for row in cell.chosen))
    losses, accuracies = map(lines_by_task, lines(cells, curves))
    if not losses:
        raise NothingToDraw(f"the store has no curves of the trials of {sweep}")
    for task in losses:
        title = task_title(TITLE, losses[task], sweep)
        caption = CAPTION.format(chosen=where_chosen(cell.chosen_at for cell in cells if cell.task.name == task))
        yield Drawing(f"learning-{sweep}-{task}", title, caption, sweep, draw(losses[task], accuracies[task], title))


FIGURE = ReportFigure(
    drawings=_drawings,
    except_sweeps=frozenset(
        {"additive", "angles", "atlas", "data-efficiency", "dihedral", "factors", "frozen-parity", "param-matched"}
    ),
    place=4,
)
