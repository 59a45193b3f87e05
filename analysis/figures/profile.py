"""Figure: the share of seeds that hold against the number of inputs. A mean hides that seeds either hold or fail."""

from collections.abc import Iterable, Iterator

import numpy as np

from orch.analysis.aggregate import where_chosen
from orch.analysis.board import Board
from orch.analysis.figures.figure import Drawing, ReportFigure
from orch.analysis.figures.lengths import FIGURE as LENGTHS
from orch.analysis.figures.lengths import sheet_of
from orch.analysis.figures.line import Line, lines_by_task
from orch.analysis.figures.line_sheet import Metric
from orch.analysis.figures.plotted_cell import PlottedCell, cells_to_plot
from orch.analysis.figures.sheet import sheet_drawing, task_title
from orch.analysis.statistics import length_profile
from orch.sweeps.measured import accuracies_by_length
from orch.sweeps.selection import LEARNED

FEWEST_SEEDS = 3
"""Least number of seeds of a line: the band of fewer would fill the panel."""
TITLE = "share of seeds that hold against length"
CAPTION = (
    "Share of seeds with an accuracy of {level} or more against the number of inputs, with the learning rate chosen"
    " {chosen}. Band: its 95% Wilson interval, grey where several models have the same. Only models with {fewest} seeds"
    " or more. Grey strip: lengths trained on. Where lines coincide, their markers take turns."
)


def lines(cells: Iterable[PlottedCell]) -> list[Line]:
    """Return a line for each cell with enough seeds, over the lengths that were measured."""
    found = []
    for cell in cells:
        shares = length_profile(map(accuracies_by_length, cell.chosen), LEARNED)
        if shares and min(share.of for share in shares.values()) >= FEWEST_SEEDS:
            values = [(length, share.value, share.low, share.high) for length, share in shares.items()]
            arrays = (np.asarray(each, dtype=float) for each in zip(*values, strict=True))
            found.append(Line(cell.task, cell.trial.model.family, cell.label, cell.look, *arrays))
    return found


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    cells = cells_to_plot(board, sweep)
    tasks = lines_by_task(lines(cells))
    for task, shown in tasks.items():
        of_task = [cell for cell in cells if cell.task.name == task]
        title = task_title(TITLE, shown, sweep)
        chosen = where_chosen(cell.chosen_at for cell in of_task)
        caption = CAPTION.format(level=LEARNED, chosen=chosen, fewest=FEWEST_SEEDS)
        sheet = sheet_of(shown, title, max(cell.trial.max_inputs for cell in of_task), Metric.SHARE)
        yield sheet_drawing(f"profile-{sweep}-{task}", sheet, caption, sweep)


FIGURE = ReportFigure(drawings=_drawings, except_sweeps=LENGTHS.except_sweeps, place=4)
