"""The board: the cells of every sweep at one scale, each joined to the finished trials that a store has of it.

Tables, claims, figures, the report and the bundle ask the board which trials of a cell are finished, failed, missing
or waiting, and never join cells to rows themselves.
"""

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from orch.analysis.aggregate import COLUMNS, CellSummary, best_first, summarise
from orch.sweeps.catalogue import BUILT_IN, Catalogue
from orch.sweeps.cell import Cell
from orch.sweeps.measured import Row
from orch.sweeps.scales import Scale
from orch.sweeps.selection import RateChoice, Results, choose_rate, rows_by_id

if TYPE_CHECKING:
    from orch.store import Store


@dataclass(frozen=True)
class BoardCell:
    """A cell of a sweep with the results of its trials."""

    cell: Cell
    finished: tuple[Row, ...]
    """Rows of the finished trials, in the order of the cell's trials."""
    failed: tuple[str, ...]
    """Ids of unfinished trials whose last attempt went wrong."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Ids of the trials that are neither finished nor failed."""
        settled = {*self.failed, *(row["trial_id"] for row in self.finished)}
        return tuple(trial_id for trial_id in self.cell.trial_ids if trial_id not in settled)

    @property
    def num_waiting(self) -> int:
        """Number of trials that have no id yet, because they wait for the results of others."""
        return len(self.cell.trials) - len(self.cell.trial_ids)

    @property
    def settled(self) -> bool:
        """Whether a low accuracy counts as a failure: every learning rate was tried, a single one with every seed."""
        if len(self.cell.learning_rates) == 1:
            return len(self.finished) == len(self.cell.trials)
        return self.cell.learning_rates <= {row["learning_rate"] for row in self.finished}

    @functools.cached_property
    def summary(self) -> CellSummary:
        """Scores by the paper's reading and by ours, and counts of the trials."""
        return summarise(self.finished, len(self.cell.trials), len(self.failed))

    @functools.cached_property
    def choice(self) -> RateChoice | None:
        """The best learning rate and where it was chosen; None if no trial is finished."""
        return choose_rate(self.finished) if self.finished else None

    @property
    def chosen(self) -> list[Row]:
        """Rows trained at the best learning rate, one for each seed; empty if no trial is finished."""
        return self.choice.rows if self.choice else []

    @property
    def chosen_best_first(self) -> list[Row]:
        """The rows of `chosen`, sorted by accuracy at the test length."""
        return best_first(self.chosen, "ood_accuracy")


@dataclass(frozen=True)
class Board:
    """Finished and failed trials, and the cells of every sweep at one scale joined to them."""

    scale: Scale
    finished: Mapping[str, Row] = field(default_factory=dict)
    """Rows of finished trials by trial id."""
    failed: Collection[str] = frozenset()
    """Ids of trials whose last attempt went wrong."""
    store: "Store | None" = None
    """The store that the rows were read from, for tables and weights that the rows lack."""
    catalogue: Catalogue = BUILT_IN
    """The sweeps that can be asked for."""
    _cells: dict[str, list[BoardCell]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def read(cls, store: "Store", scale: Scale, catalogue: Catalogue = BUILT_IN) -> "Board":
        """Read the finished and failed trials of a store, which need not exist."""
        if not store.exists():
            return cls(scale, store=store, catalogue=catalogue)
        from orch.store.failed_trials import failed_trials  # pyarrow, which tables without a store do without

        finished = rows_by_id(store.read("trials", COLUMNS))
        return cls(scale, finished, failed_trials(store, finished), store, catalogue)

    @property
    def results(self) -> Results:
        """The finished trials, as sweeps ask for them."""
        return Results(lambda: self.finished)

    def at(self, scale: Scale) -> "Board":
        """Return a board of the same trials for the cells of another scale."""
        return replace(self, scale=scale)

    def cells(self, sweep: str) -> list[BoardCell]:
        """Return every cell that a sweep has at this scale, in the order of the sweep."""
        if sweep not in self._cells:
            self._cells[sweep] = [
                self.join(cell) for cell in self.catalogue.sweeps[sweep].cells(self.scale, self.results)
            ]
        return self._cells[sweep]

    @functools.cached_property
    def seeds(self) -> list[int]:
        """The seeds of initialisation that any finished trial has."""
        return sorted({row["init_seed"] for row in self.finished.values()})

    def every_seed(self, cell: BoardCell) -> dict[int, Row]:
        """Return the rows at a cell's chosen learning rate by seed, also those of seeds that only other sweeps have.

        Sweeps give the same seed to a trial's initialisation and its data; seeds that differ are left to their cell.
        """
        if cell.choice is None:
            return {}
        found = {row["init_seed"]: row for row in cell.choice.rows}
        example = replace(cell.cell.example, learning_rate=cell.choice.learning_rate)
        if example.init_seed == example.data_seed:
            for seed in self.seeds:
                if seed not in found:
                    row = self.finished.get(replace(example, init_seed=seed, data_seed=seed).id)
                    found |= {} if row is None else {seed: row}
        return found

    def join(self, cell: Cell) -> BoardCell:
        """Join a cell to the results of its trials."""
        ids = cell.trial_ids
        finished = tuple(self.finished[trial_id] for trial_id in ids if trial_id in self.finished)
        failed = tuple(trial_id for trial_id in ids if trial_id in self.failed and trial_id not in self.finished)
        return BoardCell(cell, finished, failed)

    def weights(self, trial_id: str) -> bytes | None:
        """Return the stored weights of a trial, or None if they were not kept."""
        return None if self.store is None else self.store.get_weights(trial_id)

    def best_with_weights(self, cell: BoardCell) -> tuple[Row, bytes] | None:
        """Return the best trial at the chosen learning rate whose weights were kept, with its weights."""
        for row in cell.chosen_best_first:
            if (weights := self.weights(row["trial_id"])) is not None:
                return row, weights
        return None
