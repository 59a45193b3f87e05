"""Figure: accuracy against the number of training examples, for fixed training sets."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from orch.analysis.board import Board
from orch.analysis.figures.axes import short
from orch.analysis.figures.figure import Drawing, ReportFigure
from orch.analysis.figures.line import Line, make_line
from orch.analysis.figures.line_sheet import LineSheet, SheetRow, legend_of
from orch.analysis.figures.plotted_cell import PlottedCell, cells_to_plot
from orch.analysis.figures.sheet import draw_sheet, in_parts, sheet_drawing
from orch.sweeps.measured import measured
from orch.tasks import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALONG = ("train_examples", "steps")
"""Settings in which the cells of one line differ."""

TITLE = "Accuracy at {length} inputs against the number of training examples"
CAPTION = (
    "Accuracy at {length} inputs (0 is chance, 1 is perfect) against the number of training examples: the mean over"
    " seeds, within their range, with the learning rate that did best for the model in Table 1. Where lines coincide,"
    " their markers take turns."
)


def lines(cells: Iterable[PlottedCell]) -> list[Line]:
    """Return a line for each model and task, over the sizes that have finished trials."""
    groups: dict[tuple[Task, str], list[PlottedCell]] = {}
    for cell in cells:
        groups.setdefault((cell.task, cell.label), []).append(cell)
    found = []
    for group in groups.values():
        group.sort(key=lambda cell: cell.trial.train_examples)
        scores = {cell.trial.train_examples: [measured(row, "ood_accuracy") for row in cell.chosen] for cell in group}
        known = {size: [score for score in of_size if score is not None] for size, of_size in scores.items()}
        if sizes := [size for size in known if known[size]]:
            found.append(make_line(group[0], sizes, [known[size] for size in sizes]))
    return found


def sheet_of(lines: Sequence[Line], title: str) -> LineSheet:
    """Lay out a column for each modulus, and for each task a row, or several if there are many models."""
    tasks = {line.task.name: line.task.title_of() for line in lines}
    moduli = sorted({line.task.modulus for line in lines})
    sizes = sorted({size for line in lines for size in line.x})
    rows = [
        SheetRow(
            label=title_of_task,
            panels=[
                [line for line in part if (line.task.name, line.task.modulus) == (task, modulus)] for modulus in moduli
            ],
            legend=legend_of(part) if task == next(iter(tasks)) else {},
        )
        for part in in_parts(lines)
        for task, title_of_task in tasks.items()
    ]
    return LineSheet(
        title=title,
        x_label="Training examples",
        columns=[f"m = {modulus}" for modulus in moduli],
        rows=rows,
        limits=(0.6 * sizes[0], 1.6 * sizes[-1]),
        ticks={size: short(size) for size in sizes},
    )


def draw(lines: Sequence[Line], title: str) -> "Figure":
    """Draw the lines of all tasks for print."""
    return draw_sheet(sheet_of(lines, title))


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    cells = cells_to_plot(board, sweep, ALONG)
    trial = cells[0].trial
    title = TITLE.format(length=trial.test_length)
    caption = CAPTION.format(length=trial.test_length)
    yield sheet_drawing(sweep, sheet_of(lines(cells), title), caption, sweep)


FIGURE = ReportFigure(drawings=_drawings, sweeps=frozenset({"data-efficiency"}))
