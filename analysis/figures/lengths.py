"""Figure: accuracy against the number of inputs, far beyond the lengths trained on. The paper shows only one length."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from orch.analysis.aggregate import where_chosen
from orch.analysis.board import Board
from orch.analysis.figures.axes import accuracy_axis, add_lines, logarithmic_axis
from orch.analysis.figures.figure import Drawing, NothingToDraw, ReportFigure
from orch.analysis.figures.line import Line, lines_by_task, make_line
from orch.analysis.figures.plotted_cell import PlottedCell, cells_to_plot
from orch.analysis.figures.sheet import column_names, families, legend_of, make_sheet, row_label, task_title
from orch.analysis.figures.style import FAINT, styled
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


@styled()
def draw(lines: Sequence[Line], title: str, longest_trained: int = 10, quantity: str = "accuracy") -> "Figure":
    """Draw the lines of one task; `quantity` names the vertical axis."""
    rows = families(lines)
    columns = column_names(lines)
    sheet = make_sheet(title, "Number of inputs", columns, [legend_of(row) for _, row in rows])
    tested = sorted({length for each in lines for length in each.x})
    ticks = {length: f"{length:.0f}" for length in tested}
    for (family, row), panels in zip(rows, sheet.panels, strict=True):
        panels[0].set_ylabel(row_label(family, quantity, len(rows)))
        for heading, axes in zip(columns, panels, strict=True):
            logarithmic_axis(axes, (0.65 * tested[0], 1.6 * tested[-1]), ticks)
            accuracy_axis(axes, lines)
            axes.axvspan(0.1, longest_trained, color=FAINT, alpha=0.6, linewidth=0, zorder=0)
            add_lines(axes, [each for each in row if each.task.heading == heading])
    return sheet.figure


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    cells = cells_to_plot(board, sweep)
    tasks = lines_by_task(lines(cells))
    if not tasks:
        raise NothingToDraw(f"no trial of {sweep} has a length curve")
    for task, shown in tasks.items():
        trained = max(cell.trial.max_inputs for cell in cells if cell.task.name == task)
        title = task_title(TITLE, shown, sweep)
        caption = CAPTION.format(chosen=where_chosen(cell.chosen_at for cell in cells if cell.task.name == task))
        yield Drawing(f"lengths-{sweep}-{task}", title, caption, sweep, draw(shown, title, trained))


FIGURE = ReportFigure(
    drawings=_drawings,
    except_sweeps=frozenset({"additive", "angles", "atlas", "data-efficiency", "factors", "frozen-parity"}),
    place=3,
)
