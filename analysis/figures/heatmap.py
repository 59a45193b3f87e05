"""Figure: Table 1 as a heat map, with our accuracy in each cell and the published one beneath it."""

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from orch.analysis.aggregate import CellStatus
from orch.analysis.board import Board
from orch.analysis.comparison import Comparison
from orch.analysis.figures.figure import Drawing, ReportFigure, comparisons_of
from orch.analysis.figures.shade import digits, shade, text_on
from orch.analysis.figures.sheet import TITLE_LETTER
from orch.analysis.figures.style import FAINT, PUBLISHED, SOFT, styled, titled_figure
from orch.analysis.published import OOD, TABLES, VALIDATION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DIFFERS = 0.1
"""Larger differences from the published number are framed."""

TITLE = "Table 1: accuracy {where}, ours and published"
CAPTION = (
    "Accuracy {where} (0 is chance, 1 is perfect): ours in bold, the best over learning rates and seeds, on its colour;"
    " beneath it the published number. Framed: they differ by more than {differs}. *: some trials are unfinished or"
    " diverged. Hatched: no results yet."
)

_CELL_WIDTH, _CELL_HEIGHT, _LEAST_TASK_WIDTH = 0.345, 0.3, 1.35
_LEFT, _TOP, _BOTTOM, _RIGHT, _BETWEEN = 1.62, 0.58, 0.46, 0.1, 0.12


@styled()
def draw(comparisons: Iterable[Comparison], title: str) -> "Figure":
    """Draw one table and split: a row for each model, a column for each modulus of each task."""
    shown = list(comparisons)
    models = list(dict.fromkeys(each.published.key.model_title for each in shown))
    tasks = list(dict.fromkeys(each.published.key.task_type for each in shown))
    moduli = {
        task: sorted({each.published.key.modulus for each in shown if each.published.key.task_type is task})
        for task in tasks
    }
    across = [max(len(moduli[task]) * _CELL_WIDTH, _LEAST_TASK_WIDTH) for task in tasks]
    width = max(_LEFT + sum(across) + (len(tasks) - 1) * _BETWEEN + _RIGHT, TITLE_LETTER * len(title))
    tall = len(models) * _CELL_HEIGHT
    height = _TOP + tall + _BOTTOM
    figure = titled_figure(title, width, height)
    left = _LEFT
    for task, room in zip(tasks, across, strict=True):
        axes = figure.add_axes((left / width, _BOTTOM / height, room / width, tall / height))
        left += room + _BETWEEN
        axes.set_title(task.title_of(), pad=5, fontweight="bold")
        _prepare(axes, models if task is tasks[0] else None, moduli[task], len(models))
        for each in shown:
            key = each.published.key
            if key.task_type is task:
                _add_cell(axes, moduli[task].index(key.modulus), models.index(key.model_title), each)
    figure.supxlabel(
        "Modulus m, or number of states", x=(_LEFT + left - _BETWEEN) / 2 / width, y=0.06 / height, va="bottom"
    )
    return figure


def _prepare(axes: "Axes", models: Sequence[str] | None, moduli: Sequence[int], num_rows: int) -> None:
    axes.set(xlim=(0, len(moduli)), ylim=(num_rows, 0))
    axes.set_xticks([place + 0.5 for place in range(len(moduli))], [str(modulus) for modulus in moduli])
    axes.set_yticks([place + 0.5 for place in range(num_rows)], models or [""] * num_rows)
    axes.tick_params(length=0, pad=3)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _add_cell(axes: "Axes", column: int, row: int, each: Comparison) -> None:
    from matplotlib.patches import Rectangle

    ours, difference = each.ours, each.difference
    if ours is None or difference is None:
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor="white", edgecolor=FAINT, hatch="////", linewidth=0))
        upper, colour = "–", SOFT
    else:
        face = shade(ours)
        axes.add_patch(Rectangle((column, row), 1, 1, facecolor=face, edgecolor="white", linewidth=0.8))
        if abs(difference) > DIFFERS:
            inside = Rectangle((column + 0.06, row + 0.07), 0.88, 0.86, fill=False, edgecolor=PUBLISHED, linewidth=1.3)
            axes.add_patch(inside)
        upper, colour = digits(ours), text_on(face)
        if each.summary.status is not CellStatus.COMPLETE or each.summary.num_diverged:
            upper += "*"
    middle = column + 0.5
    axes.text(middle, row + 0.31, upper, ha="center", va="center", color=colour, fontweight="bold")
    axes.text(middle, row + 0.72, digits(each.published.accuracy), ha="center", va="center", color=colour)


def _drawings(board: Board, sweep: str) -> Iterator[Drawing]:
    for split, where in ((VALIDATION, "at trained lengths"), (OOD, f"at {TABLES['main'].test_length} inputs")):
        title = TITLE.format(where=where)
        caption = CAPTION.format(where=where, differs=DIFFERS)
        source = functools.partial(draw, comparisons_of(board, "main", split), title)
        yield Drawing(f"heatmap-{sweep}-{split}", title, caption, sweep, source, on_page=_as_table)


def _as_table() -> str:
    """Leave the figure out of the page, which has Table 1 itself."""
    return ""


FIGURE = ReportFigure(drawings=_drawings, sweeps=frozenset({"main"}), place=2)
