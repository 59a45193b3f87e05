"""Figure: accuracy against the number of training examples, for fixed training sets of ten inputs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from orch.analysis.aggregate import scored
from orch.analysis.board import Board
from orch.analysis.figures.axes import accuracy_axis, add_lines, logarithmic_axis, short
from orch.analysis.figures.figure import Drawing, ReportFigure
from orch.analysis.figures.line import Line, make_line
from orch.analysis.figures.plotted_cell import PlottedCell, cells_to_plot
from orch.analysis.figures.sheet import legend_of, make_sheet, moduli
from orch.analysis.figures.style import styled
from orch.tasks import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALONG = ("train_examples", "steps")
"""Settings in which the cells of one line differ."""

TITLE = "Accuracy at {length} inputs against the number of training examples"
CAPTION = (
    "Accuracy at {length} inputs (0 is chance, 1 is perfect) against the number of training examples, each of"
    " {trained} inputs: the mean over seeds, within their range, with the learning rate that did best for the model in"
    " Table 1. So that none hides another, markers of one size stand side by side, and equal lines are stacked."
)


def lines(cells: Iterable[PlottedCell]) -> list[Line]:
    """Return a line for each model and task, over the sizes that have finished trials."""
    groups: dict[tuple[Task, str], list[PlottedCell]] = {}
    for cell in cells:
        groups.setdefault((cell.task, cell.label), []).append(cell)
    found = []
    for group in groups.values():
        group.sort(key=lambda cell: cell.trial.train_examples)
        accuracies = [[scored(row["ood_accuracy"]) for row in cell.chosen] for cell in group]
        found.append(make_line(group[0], [cell.trial.train_examples for cell in group], accuracies))
    return found


@styled()
def draw(lines: Sequence[Line], title: str) -> "Figure":
    """Draw a row for each task and a column for each modulus."""
    tasks = {line.task.name: line.task.title_of() for line in lines}
    legend = legend_of(lines)
    columns = moduli(lines)
    sheet = make_sheet(
        title, "Training examples", [f"m = {modulus}" for modulus in columns], [legend] + [{}] * (len(tasks) - 1)
    )
    sizes = sorted({size for line in lines for size in line.x})
    ticks = {size: short(size) for size in sizes if len(sizes) < 3 or size in (sizes[0], 1000, sizes[-1])}
    for (task, name), panels in zip(tasks.items(), sheet.panels, strict=True):
        panels[0].set_ylabel(f"{name}\naccuracy")
        for modulus, axes in zip(columns, panels, strict=True):
            logarithmic_axis(axes, (0.6 * sizes[0], 1.6 * sizes[-1]), ticks)
            accuracy_axis(axes, lines)
            add_lines(axes, [line for line in lines if (line.task.name, line.task.modulus) == (task, modulus)])
    return sheet.figure


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    cells = cells_to_plot(board, sweep, ALONG)
    trial = cells[0].trial
    title = TITLE.format(length=trial.test_length)
    caption = CAPTION.format(length=trial.test_length, trained=trial.max_inputs)
    yield Drawing(sweep, title, caption, sweep, draw(lines(cells), title))


FIGURE = ReportFigure(drawings=_drawings, sweeps=frozenset({"data-efficiency"}))
