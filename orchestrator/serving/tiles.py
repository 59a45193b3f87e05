"""Grids of tiles: the cells of a sweep by model and task, each with its results so far."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from orch.analysis.aggregate import CellSummary, summarise
from orch.analysis.board import Board
from orch.analysis.comparison import compare
from orch.analysis.differing_settings import distinguish
from orch.analysis.published import OOD, tables_of
from orch.analysis.report.collect import sweep_result
from orch.analysis.statistics import Share
from orch.core.records import trials_of_cell
from orch.sweeps.measured import Row

_VARY = ("learning_rate", "init_seed", "data_seed")


class Column(NamedTuple):
    """A column of a grid: a task, and the settings that distinguish it from others of its name."""

    task: str
    heading: str


@dataclass(frozen=True, slots=True)
class Tile:
    """One cell of a grid."""

    summary: CellSummary
    trial_ids: tuple[str, ...]
    published: float | None = None
    num_running: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings that its trials share."""

    @property
    def accuracy(self) -> float | None:
        """The best accuracy at the test length over learning rates and seeds; None if it was not measured."""
        return None if self.summary.scores is None else self.summary.scores[OOD].best

    @property
    def mean(self) -> float | None:
        """The mean accuracy over the seeds of the chosen learning rate; None if it was not measured."""
        return None if self.summary.scores is None else self.summary.scores[OOD].mean

    @property
    def learned(self) -> Share | None:
        """The seeds of the chosen learning rate that learned; None if the accuracy was not measured."""
        return None if self.summary.scores is None else self.summary.scores[OOD].learned

    @property
    def trial_to_show(self) -> str | None:
        """The best trial, or the first if none is measured; None if all of them wait for others."""
        best = None if self.summary.scores is None else self.summary.scores[OOD].best_trial
        return best or (self.trial_ids[0] if self.trial_ids else None)


@dataclass(frozen=True, slots=True)
class TileGrid:
    """The tiles of one sweep at one scale."""

    sweep: str
    scale: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[Column, ...]
    tiles: Mapping[tuple[str, Column], Tile]

    @property
    def key(self) -> str:
        return f"{self.sweep} {self.scale}"

    @property
    def num_done(self) -> int:
        return sum(tile.summary.num_done for tile in self.tiles.values())

    @property
    def num_planned(self) -> int:
        return sum(tile.summary.num_planned for tile in self.tiles.values())

    @property
    def num_running(self) -> int:
        return sum(tile.num_running for tile in self.tiles.values())

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The tasks above the columns, each with the number of its columns."""
        found: list[tuple[str, int]] = []
        for column in self.columns:
            if found and found[-1][0] == column.task:
                found[-1] = (column.task, found[-1][1] + 1)
            else:
                found.append((column.task, 1))
        return found

    def with_running(self, running: Collection[str]) -> "TileGrid":
        """Return the grid with the number of running trials in each tile."""
        tiles = {
            place: replace(tile, num_running=sum(trial_id in running for trial_id in tile.trial_ids))
            for place, tile in self.tiles.items()
        }
        return replace(self, tiles=tiles)


class PlacedTile(NamedTuple):
    """A tile with the names of its row and its column."""

    row: str
    column: Column
    tile: Tile

    @property
    def name(self) -> str:
        return f"{self.row} on {self.column.task} {self.column.heading}".rstrip()


def built_in_grid(board: Board, sweep: str, asked: Collection[str] | None = None) -> TileGrid:
    """Return the grid of a built-in sweep, with the published numbers where there are any.

    With `asked`, the ids of trials that were asked for, only cells that have one of them, or results, are shown.
    """
    result = sweep_result(sweep, board)
    published = {
        each.trial_ids: each.published.accuracy
        for each in compare(board, tables_of([sweep]))
        if each.published.split == OOD and each.trial_ids
    }
    placed = []
    for each in result.cells:
        joined = each.joined
        trial, ids = joined.cell.example, tuple(joined.cell.trial_ids)
        if asked is not None and ids and not joined.finished and not any(trial_id in asked for trial_id in ids):
            continue
        name = trial.model.title_of(joined.cell.variant)
        settings = {key: value for key, value in trial.to_dict().items() if key not in _VARY}
        tile = Tile(joined.summary, ids, published.get(ids), settings=settings)
        column = Column(trial.task.title_of(), trial.task.heading)
        placed.append(PlacedTile(f"{name}, {each.settings}" if each.settings else name, column, tile))
    return _grid(sweep, board.scale.name, result.title, placed)


def recorded_grid(
    sweep: str,
    scale: str,
    title: str,
    cells: Sequence[Mapping[str, Any]],
    finished: Mapping[str, Row],
    failed: Collection[str],
) -> TileGrid:
    """Return the grid of a user's sweep from the cells that its recording lists. No code is run."""
    texts = distinguish(
        [((cell["model"], cell["variant"], cell["task"], cell["problem"]), cell["settings"]) for cell in cells]
    )
    placed = []
    for cell, text in zip(cells, texts, strict=True):
        ids = tuple(trials_of_cell(cell))
        rows = [finished[trial_id] for trial_id in ids if trial_id in finished]
        num_failed = sum(trial_id in failed for trial_id in ids if trial_id not in finished)
        summary = summarise(rows, len(ids), num_failed)
        words = ", ".join(filter(None, [cell["variant"], text]))
        name = f"{cell['model']} ({words})" if words else cell["model"]
        settings = {key: value for key, value in cell["settings"].items() if key not in _VARY}
        settings = {"task": cell["task"], "problem": cell["problem"], "model": cell["model"]} | settings
        placed.append(PlacedTile(name, Column(cell["task"], cell["problem"]), Tile(summary, ids, settings=settings)))
    return _grid(sweep, scale, title, placed)


def _grid(sweep: str, scale: str, title: str, placed: Iterable[PlacedTile]) -> TileGrid:
    tiles: dict[tuple[str, Column], Tile] = {}
    for row, column, tile in placed:
        name, number = row, 2
        while (name, column) in tiles:  # cells that differ in nothing that has words
            name, number = f"{row}, {number}", number + 1
        tiles[name, column] = tile
    rows = dict.fromkeys(row for row, _ in tiles)
    columns = dict.fromkeys(column for _, column in tiles)
    tasks = list(dict.fromkeys(column.task for column in columns))
    ordered = sorted(columns, key=lambda column: tasks.index(column.task))
    return TileGrid(sweep, scale, title, tuple(rows), tuple(ordered), tiles)
