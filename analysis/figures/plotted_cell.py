"""A plotted cell: the label, the look and the results of one cell of a sweep."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from orch.analysis.board import Board, BoardCell
from orch.analysis.differing_settings import describe_settings, differing_settings
from orch.analysis.figures.figure import require_results
from orch.analysis.figures.style import distinct_looks
from orch.core.settings import to_dict
from orch.models.look import Look
from orch.sweeps.cell import Cell
from orch.sweeps.measured import Row
from orch.sweeps.trial import Trial
from orch.tasks import Task

_WITHIN_A_CELL = {"task", "modulus", "model", "learning_rate", "init_seed", "data_seed"}


@dataclass(frozen=True, slots=True)
class PlottedCell:
    """A cell with finished trials. Its label and look are the same in all figures of its sweep."""

    trial: Trial
    """A trial of the cell, as an example of its settings."""
    label: str
    look: Look
    chosen: Sequence[Row]
    """Finished trials at the chosen learning rate, one for each seed."""
    chosen_at: str
    """Where that learning rate was chosen, such as "100 inputs" or "validation"."""

    @property
    def task(self) -> Task:
        return self.trial.task


def cells_to_plot(board: Board, sweep: str, along: Iterable[str] = ()) -> list[PlottedCell]:
    """Return the cells of a sweep that have finished trials; raise an error if there are none."""
    require_results(board, sweep)
    return plotted_cells(board.cells(sweep), along)


def plotted_cells(cells: Iterable[BoardCell], along: Iterable[str] = ()) -> list[PlottedCell]:
    """Return those of a sweep's cells that have finished trials, in the same order.

    `along` are the settings along the axis of the figure: cells that differ only in these share a label and a line.
    """
    planned = list(cells)
    labels = _labels([each.cell for each in planned], {*_WITHIN_A_CELL, *along})
    labelled = list(zip(labels, planned, strict=True))
    look_of = distinct_looks(
        {label: each.cell.example.model.look_of(each.cell.shown_variant) for label, each in labelled}
    )
    return [
        PlottedCell(each.cell.example, label, look_of[label], each.choice.rows, each.choice.at.name)
        for label, each in labelled
        if each.choice is not None
    ]


def _labels(cells: Sequence[Cell], ignored: Collection[str]) -> list[str]:
    """Return each model's name, followed by the settings that distinguish it from others in a panel of the figure."""
    names = [", ".join(filter(None, (cell.example.model.title_of(cell.shown_variant), cell.reading))) for cell in cells]
    settings = [_settings(cell, ignored) for cell in cells]
    panels = [(cell.example.task.name, cell.example.task.heading) for cell in cells]
    in_panel = differing_settings(zip(zip(names, panels, strict=True), settings, strict=True))
    differing: dict[str, set[str]] = defaultdict(set)
    for (name, _), setting_names in in_panel.items():
        differing[name].update(setting_names)
    # A line of one label in several panels is one model. Only its width may depend on the panel.
    of_models = [to_dict(cell.example.model) for cell in cells]
    for name, setting_names in differing_settings(zip(names, of_models, strict=True)).items():
        differing[name].update({*setting_names} - {"width", *ignored})
    return [
        ", ".join(filter(None, (name, describe_settings(each, sorted(differing[name])))))
        for name, each in zip(names, settings, strict=True)
    ]


def _settings(cell: Cell, ignored: Collection[str]) -> dict[str, Any]:
    trial = cell.example
    settings = to_dict(trial) | to_dict(trial.model) | to_dict(trial.task)
    return {name: value for name, value in settings.items() if name not in ignored}
