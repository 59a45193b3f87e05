"""A plotted cell: the label, the look and the results of one cell of a sweep."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from orch.analysis.board import Board, BoardCell
from orch.analysis.figures.figure import require_results
from orch.analysis.figures.style import distinct_looks
from orch.core.settings import to_dict
from orch.models.look import Look
from orch.sweeps.cell import Cell
from orch.sweeps.selection import Row
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
    look_of = distinct_looks({label: each.cell.example.model.look_of(_variant(each.cell)) for label, each in labelled})
    return [
        PlottedCell(each.cell.example, label, look_of[label], each.chosen) for label, each in labelled if each.finished
    ]


def _variant(cell: Cell) -> str:
    """Return the variant as the cell names it, or else as the published tables do."""
    return cell.variant or cell.example.model.table_variant


def _labels(cells: Sequence[Cell], aside: Collection[str]) -> list[str]:
    """Return each model's name, followed by the settings that distinguish it from others in its panel."""
    names = []
    alike: dict[tuple[str, str, int], list[dict[str, Any]]] = defaultdict(list)
    for cell in cells:
        name = ", ".join(part for part in (cell.example.model.title_of(_variant(cell)), cell.reading) if part)
        names.append(name)
        alike[name, cell.example.task.name, cell.example.task.modulus].append(_settings(cell, aside))
    differing: dict[str, set[str]] = defaultdict(set)
    for (name, *_), group in alike.items():
        keys = {key for settings in group for key in settings}
        differing[name] |= {key for key in keys if len({str(settings.get(key)) for settings in group}) > 1}
    labels = []
    for name, cell in zip(names, cells, strict=True):
        settings = _settings(cell, aside)
        words = (f"{key.replace('_', ' ')} {settings.get(key)}" for key in sorted(differing[name]))
        labels.append(", ".join([name, *words]))
    return labels


def _settings(cell: Cell, aside: Collection[str]) -> dict[str, Any]:
    trial = cell.example
    settings = to_dict(trial) | to_dict(trial.model) | to_dict(trial.task)
    return {name: value for name, value in settings.items() if name not in aside}
