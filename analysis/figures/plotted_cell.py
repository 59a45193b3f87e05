"""An entry: what a figure knows of one cell of a sweep."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orch.analysis.figures.style import distinct_looks
from orch.core.settings import to_dict
from orch.models.look import Look
from orch.sweeps.cell import Cell
from orch.sweeps.selection import Row, of_best_rate
from orch.sweeps.trial import Trial
from orch.tasks import Task

_WITHIN_A_CELL = {"task", "modulus", "model", "learning_rate", "init_seed", "data_seed"}


@dataclass(frozen=True, slots=True)
class PlottedCell:
    """A cell with finished trials: its name and its look, the same in all figures of its sweep, and its results."""

    trial: Trial
    """One of its trials."""
    label: str
    look: Look
    chosen: Sequence[Row]
    """The finished trials of the chosen learning rate, one for each seed."""

    @property
    def task(self) -> Task:
        return self.trial.task


def entries(cells: Iterable[Cell], finished: Mapping[str, Row], along: Iterable[str] = ()) -> list[PlottedCell]:
    """Those cells of one sweep that have finished trials, in its order. `along` are settings that a figure has as its
    axis: cells that differ in these alone are of one line and have one label."""
    planned = list(cells)
    labels = _labels(planned, {*_WITHIN_A_CELL, *along})
    preferred = {label: cell.example.model.look_of(_variant(cell)) for label, cell in zip(labels, planned, strict=True)}
    look_of = distinct_looks(preferred)
    found = []
    for label, cell in zip(labels, planned, strict=True):
        rows = [finished[trial_id] for trial_id in cell.trial_ids if trial_id in finished]
        if rows:
            found.append(PlottedCell(cell.example, label, look_of[label], of_best_rate(rows)))
    return found


def _variant(cell: Cell) -> str:
    """Variant as the published tables call it, where the cell gives no name of its own."""
    return cell.variant or cell.example.model.table_variant


def _labels(cells: Sequence[Cell], aside: Collection[str]) -> list[str]:
    """The model's name, with whatever else tells apart the cells of one panel that would have the same."""
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
        told = (f"{key.replace('_', ' ')} {settings.get(key)}" for key in sorted(differing[name]))
        labels.append(", ".join([name, *told]))
    return labels


def _settings(cell: Cell, aside: Collection[str]) -> dict[str, Any]:
    trial = cell.example
    settings = to_dict(trial) | to_dict(trial.model) | to_dict(trial.task)
    return {name: value for name, value in settings.items() if name not in aside}
