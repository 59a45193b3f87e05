"""The contents of a report, gathered from a store whose sweeps may be unfinished."""

import importlib.metadata
import json
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orch.analysis.agreement import agreement
from orch.analysis.board import Board, BoardCell
from orch.analysis.claims import CLAIMS, DEMO, ClaimsAtScale, judge_board
from orch.analysis.comparison import Comparison, compare
from orch.analysis.differing_settings import distinguish
from orch.analysis.published import tables_of
from orch.core.settings import to_dict
from orch.running.status import FailureGroup, read_failures
from orch.store import Store
from orch.store.bundled import no_results
from orch.sweeps.catalogue import BUILT_IN, Catalogue, resolve
from orch.sweeps.cell import Cell
from orch.sweeps.experiments import demo
from orch.sweeps.registry import ALL, SWEEPS
from orch.sweeps.scales import LAPTOP, SCALES, Scale

_TRIAL_SETTINGS = {"train_examples", "max_inputs", "steps", "batch_size", "test_length", "balanced"}
_ORIGIN_COLUMNS = ("host", "device", "threads", "kernel", "mamba_kernel", "git_commit", "git_dirty", "packages")


@dataclass(frozen=True, slots=True)
class CellResult:
    """A cell with its scores, as a row of a table."""

    joined: BoardCell
    """The cell and the results of its trials."""
    settings: str = ""
    """Settings that distinguish it from other cells of the same model on the same task."""


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A sweep with the results of its cells."""

    name: str
    title: str
    reproduces: str
    cells: list[CellResult]

    @property
    def num_planned(self) -> int:
        """Number of trials that its cells plan."""
        return sum(each.joined.summary.num_planned for each in self.cells)

    @property
    def num_done(self) -> int:
        """Number of finished trials."""
        return sum(each.joined.summary.num_done for each in self.cells)

    @property
    def num_failed(self) -> int:
        """Number of unfinished trials whose last attempt went wrong."""
        return sum(each.joined.summary.num_failed for each in self.cells)


@dataclass(frozen=True, slots=True)
class Origin:
    """Trials that ran on one machine with one set of code and packages."""

    host: str
    device: str
    threads: int | None
    kernel: str | None
    mamba_kernel: str | None
    git_commit: str | None
    git_dirty: bool | None
    packages: dict[str, str]
    num_trials: int
    seconds: float
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class StudyReport:
    """Everything that a report shows."""

    board: Board
    location: str
    made_at: datetime
    version: str
    sweeps: list[SweepResult]
    trial_ids: set[str]
    """Every trial of the sweeps, finished or not."""
    claims: list[ClaimsAtScale]
    comparisons: list[Comparison]
    origins: list[Origin]
    failures: list[FailureGroup]

    @property
    def scale(self) -> Scale:
        """The scale of the reported cells."""
        return self.board.scale

    @property
    def num_done(self) -> int:
        """Number of finished trials, each counted once."""
        return sum(origin.num_trials for origin in self.origins)

    @property
    def num_planned(self) -> int:
        """Number of trials of the sweeps, including those that wait for the results of others."""
        waiting = (each.joined.num_waiting for sweep in self.sweeps for each in sweep.cells)
        return len(self.trial_ids) + sum(waiting)

    @property
    def summary(self) -> str:
        """The report in one line."""
        names = ", ".join(sweep.name for sweep in self.sweeps)
        counts = f"{names} at {self.scale.name} scale, {self.num_done:,} of {self.num_planned:,} trials"
        return f"{counts}; {agreement(self.comparisons)}" if self.comparisons else counts


def collect(
    store: Store, sweeps: Sequence[str] = (), scale: str | None = None, catalogue: Catalogue = BUILT_IN
) -> StudyReport:
    """Gather a report about these sweeps, or by default about those that were run on the store.

    Without a scale, the report is about the scale that most of the store's trials belong to.
    """
    if not store.exists():
        raise no_results(store.location)
    board = Board.read(store, SCALES[scale or _most_common_scale(store)], catalogue)
    names = resolve(sweeps, catalogue) if sweeps else _sweeps_of_store(store, board.scale.name)
    found = [_sweep_result(name, board) for name in names]
    trial_ids = {trial_id for sweep in found for each in sweep.cells for trial_id in each.joined.cell.trial_ids}
    return StudyReport(
        board=board,
        location=store.location,
        made_at=datetime.now(UTC),
        version=importlib.metadata.version("orch"),
        sweeps=found,
        trial_ids=trial_ids,
        claims=_claims(board, names),
        comparisons=compare(board, tables_of(names)),
        origins=_origins(store, trial_ids),
        failures=[group for group in read_failures(store) if not trial_ids.isdisjoint(group.trial_ids)],
    )


def _claims(board: Board, sweeps: Collection[str]) -> list[ClaimsAtScale]:
    """Judge the claims that these sweeps have results for. The demo's claims are judged at its own scale."""
    relevant = [claim for claim in CLAIMS if not claim.sweeps.isdisjoint(sweeps)]
    found = [judge_board(board, relevant)] if relevant and not board.scale.sparse else []
    return [*found, judge_board(board.at(demo.SMALL))] if DEMO in sweeps else found


def _most_common_scale(store: Store) -> str:
    """Return the scale of the sweeps that ask for most of the finished trials."""
    done, counts = store.done(), dict.fromkeys(SCALES, 0)
    for values in store.list_json("sweeps").values():
        if values["scale"] in counts:
            counts[values["scale"]] += 1 + sum(trial_id in done for trial_id in values["seconds"])
    return max(counts, key=counts.__getitem__) if any(counts.values()) else LAPTOP.name


def _sweeps_of_store(store: Store, scale: str) -> list[str]:
    """Return the sweeps that were run on this store at a scale; all of them if there is no record of any."""
    asked = [values["sweeps"] for values in store.list_json("sweeps").values() if values["scale"] == scale]
    # A user's sweep is reported only when its file is named: a report must not run code from a store.
    known = [name for names in asked for name in names if name == ALL or name in SWEEPS]
    return sorted(resolve(known)) or resolve([ALL])


def _sweep_result(name: str, board: Board) -> SweepResult:
    found = board.cells(name)
    settings = distinguish([_group_and_settings(each.cell) for each in found])
    cells = list(map(CellResult, found, settings))
    sweep = board.catalogue.sweeps[name]
    return SweepResult(name, sweep.title, sweep.reproduces, cells)


def _group_and_settings(cell: Cell) -> tuple[Hashable, dict[str, Any]]:
    """Return what a table shows of a cell in any case, and the settings that it shows where they differ."""
    trial = cell.example
    shown = {name: value for name, value in to_dict(trial).items() if name in _TRIAL_SETTINGS}
    return (trial.model.name, cell.variant, trial.task), to_dict(trial.model) | shown


def _origins(store: Store, trial_ids: Collection[str]) -> list[Origin]:
    """Return where the trials ran, the origin of most trials first."""
    import pyarrow as pa

    table = store.read("trials", ["trial_id", *_ORIGIN_COLUMNS, "seconds", "finished_at"])
    wanted = pa.array([trial_id in trial_ids for trial_id in table["trial_id"].to_pylist()], pa.bool_())
    measures = [("trial_id", "count"), ("seconds", "sum"), ("finished_at", "min"), ("finished_at", "max")]
    grouped = table.filter(wanted).group_by(list(_ORIGIN_COLUMNS)).aggregate(measures)
    found = [_origin(row) for row in grouped.to_pylist()]
    return sorted(found, key=lambda origin: -origin.num_trials)


def _origin(row: Mapping[str, Any]) -> Origin:
    return Origin(
        **{name: row[name] for name in _ORIGIN_COLUMNS} | {"packages": json.loads(row["packages"] or "{}")},
        num_trials=row["trial_id_count"],
        seconds=row["seconds_sum"] or 0.0,
        first=row["finished_at_min"],
        last=row["finished_at_max"],
    )
