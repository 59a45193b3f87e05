"""Cells with invented results, as figures draw them, and the texts of a figure."""

from collections.abc import Iterable, Mapping

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from orch.analysis.board import Board
from orch.analysis.figures.plotted_cell import PlottedCell, plotted_cells
from orch.sweeps.cell import Cell
from orch.sweeps.scales import PAPER
from orch.sweeps.selection import Row
from orch.sweeps.trial import Trial
from tests.analysis.invented import invented_row


def finished_rows(cells: Iterable[Cell]) -> dict[str, Row]:
    """Return a row for each trial of these cells, with scores that differ by cell and seed."""
    found = {}
    for number, cell in enumerate(cells):
        for trial in cell.trials:
            assert isinstance(trial, Trial)
            scores = dict.fromkeys(trial.tested_lengths, number % 7 / 6 * 10 / (10 + trial.init_seed))
            curve = [{"length": length, "accuracy": score} for length, score in scores.items()]
            found[trial.id] = invented_row(
                trial.id, trial.learning_rate, trial.init_seed, ood_accuracy=scores[500], length_curve=curve
            )
    return found


def plotted(cells: Iterable[Cell], finished: Mapping[str, Row], along: Iterable[str] = ()) -> list[PlottedCell]:
    return plotted_cells(map(Board(PAPER, finished).join, cells), along)


def visible_texts(figure: Figure) -> list[tuple[str, Text, tuple[float, float, float, float]]]:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    without_axes = [axes for axes in figure.axes if not axes.axison]
    not_drawn = [label for axes in without_axes for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    found = []
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if text not in not_drawn and text.get_visible() and text.get_text().strip():
            found.append((text.get_text(), text, text.get_window_extent(canvas.get_renderer()).extents))
    return found
