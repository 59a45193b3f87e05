"""Figure: validation loss and accuracy against the training step."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from orch.analysis.aggregate import where_chosen
from orch.analysis.board import Board
from orch.analysis.figures.axes import short
from orch.analysis.figures.figure import Drawing, NothingToDraw, ReportFigure
from orch.analysis.figures.line import Array, Line, lines_by_task, make_line
from orch.analysis.figures.line_sheet import LineSheet, Metric, SheetRow, by_heading, legend_of
from orch.analysis.figures.plotted_cell import PlottedCell, cells_to_plot
from orch.analysis.figures.sheet import column_names, draw_sheet, families, row_label, sheet_drawing, task_title

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyarrow import Table

COLUMNS = ("trial_id", "step", "validation_loss", "validation_accuracy")
"""Columns needed from the table of curves."""

_MOST_POINTS = 40
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


def sheet_of(losses: Sequence[Line], accuracies: Sequence[Line], title: str) -> LineSheet:
    """Lay out one task: for each family of models a row of losses and a row of accuracies."""
    by_family, columns = families(losses), column_names(losses)
    rows = []
    for (family, loss), (_, accuracy) in zip(by_family, families(accuracies), strict=True):
        label = row_label(family, len(by_family))
        legend = legend_of(loss)
        rows += [
            SheetRow(label=label, panels=by_heading(loss, columns), legend=legend, metric=Metric.LOSS),
            SheetRow(label="", panels=by_heading(accuracy, columns), legend={}),
        ]
    first, last = min(line.x[0] for line in losses), max(line.x[-1] for line in losses)
    return LineSheet(
        title=title,
        x_label="Training step",
        columns=columns,
        rows=rows,
        limits=(0.8 * first, 1.25 * last),
        ticks=_ticks(first, last),
        marker_every=_MARKER_EVERY,
        bands=False,
        height=1.15,
    )


def _ticks(first: float, last: float) -> dict[float, str]:
    """Return the powers of ten between two steps; where they are fewer than two, the two steps themselves."""
    powers = [10.0**power for power in range(8) if first <= 10**power <= last]
    places = powers[:: 1 if len(powers) < 3 else 2] if len(powers) > 1 else sorted({first, last})
    return {place: short(place) for place in places}


def draw(losses: Sequence[Line], accuracies: Sequence[Line], title: str) -> "Figure":
    """Draw one task for print."""
    return draw_sheet(sheet_of(losses, accuracies, title))


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
        sheet = sheet_of(losses[task], accuracies[task], title)
        yield sheet_drawing(f"learning-{sweep}-{task}", sheet, caption, sweep)


FIGURE = ReportFigure(
    drawings=_drawings,
    except_sweeps=frozenset(
        {"additive", "angles", "atlas", "data-efficiency", "dihedral", "factors", "frozen-parity", "param-matched"}
    ),
    place=4,
)
