"""Figure: accuracy against the number of inputs, far beyond the lengths trained on. The paper shows only one length."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from orch.analysis.aggregate import where_chosen
from orch.analysis.board import Board
from orch.analysis.figures.figure import Drawing, NothingToDraw, ReportFigure
from orch.analysis.figures.line import Line, lines_by_task, make_line
from orch.analysis.figures.line_sheet import LineSheet, Metric, SheetRow, by_heading, legend_of
from orch.analysis.figures.plotted_cell import PlottedCell, cells_to_plot
from orch.analysis.figures.sheet import column_names, draw_sheet, families, row_label, sheet_drawing, task_title
from orch.sweeps.measured import accuracies_by_length

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "accuracy against length"
CAPTION = (
    "Accuracy (0 is chance, 1 is perfect) against the number of inputs, with the learning rate chosen {chosen}:"
    " the mean over its seeds, within their range. Grey: lengths trained on. Where lines coincide, their markers take"
    " turns."
)


def lines(cells: Iterable[PlottedCell]) -> list[Line]:
    """Return a line for each cell that has length curves, over the lengths that were measured."""
    found = []
    for cell in cells:
        curves = [accuracies_by_length(row) for row in cell.chosen]
        lengths = sorted({length for curve in curves for length in curve})
        if lengths:
            accuracies = ([curve[length] for curve in curves if length in curve] for length in lengths)
            found.append(make_line(cell, lengths, accuracies))
    return found


def sheet_of(
    lines: Sequence[Line], title: str, longest_trained: int = 10, metric: Metric = Metric.ACCURACY
) -> LineSheet:
    """Lay out the lines of one task: a row for each family of models."""
    rows, columns = families(lines), column_names(lines)
    tested = sorted({length for each in lines for length in each.x})
    return LineSheet(
        title=title,
        x_label="Number of inputs",
        columns=columns,
        rows=[
            SheetRow(
                label=row_label(family, len(rows)),
                panels=by_heading(row, columns),
                legend=legend_of(row),
                metric=metric,
            )
            for family, row in rows
        ],
        limits=(0.65 * tested[0], 1.6 * tested[-1]),
        ticks={length: f"{length:.0f}" for length in tested},
        shaded_to=longest_trained,
    )


def draw(lines: Sequence[Line], title: str, longest_trained: int = 10) -> "Figure":
    """Draw the lines of one task for print."""
    return draw_sheet(sheet_of(lines, title, longest_trained))


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    cells = cells_to_plot(board, sweep)
    tasks = lines_by_task(lines(cells))
    if not tasks:
        raise NothingToDraw(f"no trial of {sweep} has a length curve")
    for task, shown in tasks.items():
        trained = max(cell.trial.max_inputs for cell in cells if cell.task.name == task)
        title = task_title(TITLE, shown, sweep)
        caption = CAPTION.format(chosen=where_chosen(cell.chosen_at for cell in cells if cell.task.name == task))
        yield sheet_drawing(f"lengths-{sweep}-{task}", sheet_of(shown, title, trained), caption, sweep)


FIGURE = ReportFigure(
    drawings=_drawings,
    except_sweeps=frozenset({"additive", "angles", "atlas", "data-efficiency", "factors", "frozen-parity"}),
    place=3,
)
