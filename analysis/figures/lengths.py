"""Figure: accuracy against the number of inputs, far beyond the lengths trained on. The paper shows only one length."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from orch.analysis.aggregate import scored
from orch.analysis.board import Board
from orch.analysis.figures.axes import accuracy_axis, add_lines, logarithmic_axis
from orch.analysis.figures.figure import Drawing, NothingToDraw, ReportFigure
from orch.analysis.figures.line import Line, lines_by_task, make_line
from orch.analysis.figures.plotted_cell import PlottedCell, cells_to_plot
from orch.analysis.figures.sheet import column_names, families, legend_of, make_sheet, moduli, task_title
from orch.analysis.figures.style import FAINT, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "accuracy against length"
CAPTION = (
    "Accuracy (0 is chance, 1 is perfect) against the number of inputs, with the learning rate chosen at 100 inputs:"
    " the mean over its seeds, within their range. Grey: lengths trained on. So that none hides another, markers of one"
    " length stand side by side, and equal lines are stacked."
)


def lines(cells: Iterable[PlottedCell]) -> list[Line]:
    """Return a line for each cell that has length curves."""
    found = []
    for cell in cells:
        curves = [row["length_curve"] for row in cell.chosen if row["length_curve"]]
        if curves:
            lengths = [point["length"] for point in curves[0]]
            accuracies = ([scored(point["accuracy"]) for point in points] for points in zip(*curves, strict=True))
            found.append(make_line(cell, lengths, accuracies))
    return found


@styled()
def draw(lines: Sequence[Line], title: str, longest_trained: int = 10) -> "Figure":
    """Draw the lines of one task."""
    rows = families(lines)
    sheet = make_sheet(title, "Number of inputs", column_names(lines), [legend_of(row) for row in rows.values()])
    shortest, longest = min(each.x[0] for each in lines), max(each.x[-1] for each in lines)
    ticks = {length: f"{length:.0f}" for length in (10, 50, longest) if length <= longest}
    for (family, row), panels in zip(rows.items(), sheet.panels, strict=True):
        panels[0].set_ylabel(f"{family}\naccuracy")
        for modulus, axes in zip(moduli(lines), panels, strict=True):
            logarithmic_axis(axes, (0.65 * shortest, 1.6 * longest), ticks)
            accuracy_axis(axes, lines)
            axes.axvspan(0.1, longest_trained, color=FAINT, alpha=0.6, linewidth=0, zorder=0)
            add_lines(axes, [each for each in row if each.task.modulus == modulus])
    return sheet.figure


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    cells = cells_to_plot(board, sweep)
    tasks = lines_by_task(lines(cells))
    if not tasks:
        raise NothingToDraw(f"no trial of {sweep} has a length curve")
    for task, shown in tasks.items():
        trained = max(cell.trial.max_inputs for cell in cells if cell.task.name == task)
        title = task_title(TITLE, shown, sweep)
        yield Drawing(f"lengths-{sweep}-{task}", title, CAPTION, sweep, draw(shown, title, trained))


FIGURE = ReportFigure(
    drawings=_drawings,
    except_sweeps=frozenset({"additive", "angles", "data-efficiency", "factors", "frozen-parity"}),
    place=3,
)
