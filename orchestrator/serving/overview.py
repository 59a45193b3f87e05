"""The overview of a store: progress, running trials, results, claims and failures, from the store alone.

The reader is incremental. Tables keep what they have read; results are joined again only after a new result; and all of
it together may take a twentieth of one core, so that a sweep on the same machine does not notice.
"""

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from orch.analysis.aggregate import COLUMNS
from orch.analysis.board import Board
from orch.analysis.cells import problem, variant
from orch.analysis.claims import ClaimsAtScale, Verdict
from orch.analysis.report.collect import most_common_scale, relevant_claims
from orch.core.records import seconds_by_trial, trials_of_cell
from orch.running.status import FailureGroup, StoreStatus, SweepStatus, TrialOnWorker, read_failures, read_status
from orch.serving.money import HourlyPrice, MoneyLeft
from orch.serving.tiles import PlacedTile, TileGrid, built_in_grid, recorded_grid
from orch.store import Store
from orch.sweeps.catalogue import resolve
from orch.sweeps.measured import Row
from orch.sweeps.registry import ALL, SWEEPS
from orch.sweeps.scales import find_scale, is_scale
from orch.usercode.naming import own_names, recordings

LOCAL_SECONDS, BUCKET_SECONDS = 2.0, 5.0
"""Shortest time between two readings of a folder, and of a bucket, where every reading costs requests."""
SHARE = 0.05
"""The largest share of one core that reading and joining may take."""
NUM_NEWEST = 12
LOST = "lost, will be resumed"
"""What a trial is whose driver is gone: it is still to do."""
_SCORES = ("trial_id", "validation_accuracy", "ood_accuracy", "stop_reason", "steps_trained", "seconds")
_NEWEST = (
    "trial_id", "finished_at", "model", "task", "config", "learning_rate", "init_seed", "validation_accuracy",
    "ood_accuracy", "stop_reason", "steps_trained", "seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewResult:
    """A trial that finished lately."""

    trial_id: str
    label: str
    validation_accuracy: float | None
    ood_accuracy: float | None
    stop_reason: str
    steps_trained: int
    seconds: float | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class Turned:
    """A change of a claim's verdict that was seen since the reader was made."""

    before: Verdict
    at: datetime


@dataclass(frozen=True, slots=True)
class Results:
    """The part of the page that is computed from finished and failed trials."""

    finished: Mapping[str, Row]
    grids: tuple[TileGrid, ...] = ()
    claims: tuple[ClaimsAtScale, ...] = ()
    newest: tuple[NewResult, ...] = ()
    scale: str = "laptop"
    """The scale that most trials belong to."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything that the first page and the terminal show."""

    status: StoreStatus
    results: Results
    grids: tuple[TileGrid, ...]
    """The grids of the results, with the numbers of running trials; sweeps with running trials come first."""
    failures: tuple[FailureGroup, ...]
    """The failures, and as a group of their own the trials that were only lost."""
    turned: Mapping[tuple[str, str], Turned] = field(default_factory=dict)
    """Claims whose verdict has changed, by scale and id."""
    money: MoneyLeft | None = None
    version: str = field(default="", compare=False)
    """A name for what is shown here, which changes with it."""

    @property
    def sweeps(self) -> list[SweepStatus]:
        """The sweeps: running ones first, then unfinished ones, then finished ones; outdated ones last."""
        return sorted(
            self.status.sweeps, key=lambda each: (each.outdated, not each.running, each.done == each.total, each.name)
        )

    @property
    def active_sweeps(self) -> list[SweepStatus]:
        """The sweeps that have running trials."""
        return [each for each in self.sweeps if each.running]

    @property
    def num_left(self) -> int:
        """Distinct trials to do, without those that were lost and those that wait for results of others."""
        return self.status.distinct.to_do

    @property
    def num_lost(self) -> int:
        """Trials that were lost with their driver and will be resumed."""
        return self.status.distinct.lost

    @property
    def num_running(self) -> int:
        return self.status.distinct.running

    @property
    def location(self) -> str:
        return self.status.location

    @property
    def running(self) -> list[TrialOnWorker]:
        """Trials in training, the most advanced first."""
        return sorted(self.status.running, key=lambda each: -(each.progress.share_done if each.progress else 0.0))

    @property
    def num_done(self) -> int:
        return len(self.results.finished)

    @property
    def num_failed(self) -> int:
        """Trials that have failed, without those that were only lost."""
        return self.status.distinct.failed - self.status.distinct.lost

    def tile_of(self, trial_id: str) -> PlacedTile | None:
        """Return the first tile that has a trial, with the names of its row and column; None if there is none."""
        for grid in self.grids:
            for (row, column), tile in grid.tiles.items():
                if trial_id in tile.trial_ids:
                    return PlacedTile(row, column, tile)
        return None

    def name_of(self, running: TrialOnWorker) -> str:
        """Return the label of a trial in training; before its first report, the names of its tile."""
        if running.progress is not None and running.progress.label:
            return running.progress.label
        placed = self.tile_of(running.trial_id)
        return running.trial_id if placed is None else placed.name


class OverviewReader:
    """Reads the overview of one store. It may be used by several threads, which share what was read."""

    def __init__(self, store: Store, price: HourlyPrice | None = None):
        self.store = store
        self._price = price
        self._lock = threading.Lock()
        self._overview: Overview | None = None
        self._due_at = 0.0
        self._results: Results | None = None
        self._results_key: tuple[Any, ...] = ()
        self._results_due_at = 0.0
        self._verdicts: dict[tuple[str, str], Verdict] = {}
        self._turned: dict[tuple[str, str], Turned] = {}
        self.share = SHARE
        self.seconds = BUCKET_SECONDS if "://" in store.uri else LOCAL_SECONDS

    def read(self) -> Overview:
        """Return the overview, read again if that is due. The same object is returned while nothing has changed."""
        with self._lock:
            if self._overview is None or time.monotonic() >= self._due_at:
                before = time.thread_time()
                found = self._read()
                if found != self._overview:
                    self._overview = replace(found, version=secrets.token_hex(6))
                self._due_at = time.monotonic() + max(self.seconds, (time.thread_time() - before) / self.share)
            return self._overview

    def _read(self) -> Overview:
        status = read_status(self.store)
        failures = tuple(read_failures(self.store))
        results = self._read_results(failures)
        running = {each.trial_id for each in status.running}
        grids = [grid.with_running(running) for grid in results.grids] if running else list(results.grids)
        hosts = {each.worker.partition(":")[0] for each in status.running}
        return Overview(
            status=status,
            results=results,
            grids=tuple(sorted(grids, key=lambda grid: not grid.num_running)),
            failures=failures,
            turned=dict(self._turned),
            money=None if self._price is None else self._price.left(len(hosts), status.seconds_left),
        )

    def _read_results(self, failures: tuple[FailureGroup, ...]) -> Results:
        """Join the results again if there are new ones, a trial has failed or a sweep was asked for."""
        table = self.store.read("trials", list(dict.fromkeys([*COLUMNS, *_NEWEST])))
        records = recordings(self.store)
        failed = frozenset(key for group in failures if not group.only_lost for key in group.trial_ids)
        key = (id(table), failed, tuple((str(each.get("at")), len(each["seconds"])) for each in records))
        if self._results is not None and (key == self._results_key or time.monotonic() < self._results_due_at):
            return self._results
        before = time.thread_time()
        self._results = _join(self.store, table, records, failed)
        self._results_key = key
        self._results_due_at = time.monotonic() + (time.thread_time() - before) / self.share
        self._kept = table  # its id stays taken while it is part of the key
        self._compare_verdicts(self._results.claims)
        return self._results

    def _compare_verdicts(self, claims: tuple[ClaimsAtScale, ...]) -> None:
        now = datetime.now(UTC)
        for asked in claims:
            for judgement in asked.judgements:
                key = (asked.scale, judgement.claim.id)
                before = self._verdicts.get(key, judgement.verdict)
                if before is not judgement.verdict:
                    self._turned[key] = Turned(before, now)
                self._verdicts[key] = judgement.verdict


def _join(store: Store, table: pa.Table, records: list[Mapping[str, Any]], failed: frozenset[str]) -> Results:
    finished = {row["trial_id"]: row for row in table.select(list(COLUMNS)).to_pylist()}
    common = most_common_scale(store)
    board = Board(find_scale(common), finished, failed, store)
    by_scale: dict[str, list[str]] = {}
    for values in reversed(records):
        names = [name for name in values["sweeps"] if name == ALL or name in SWEEPS]
        if is_scale(values["scale"]) and names:
            by_scale.setdefault(values["scale"], []).extend(names)
    if not records:
        by_scale[common] = [ALL]
    asked = {trial_id for values in records for trial_id in seconds_by_trial(values)} if records else None
    grids = list(_own_grids(records, finished, failed))
    claims = []
    for scale, names in sorted(by_scale.items(), key=lambda each: each[0] != common):
        at_scale = board.at(find_scale(scale))
        sweeps = [name for name in resolve(names) if records or any(each.finished for each in at_scale.cells(name))]
        # The paper's main table comes first.
        grids += [built_in_grid(at_scale, sweep, asked) for sweep in sorted(sweeps, key=lambda name: name != "main")]
        claims += relevant_claims(at_scale, sweeps)
    return Results(finished, tuple(grids), tuple(claims), tuple(_newest(table)), common)


def _own_grids(records: list[Mapping[str, Any]], finished: Mapping[str, Row], failed: frozenset[str]) -> list[TileGrid]:
    """Return the grids of users' sweeps, the newest first. Recordings of earlier versions have no cells."""
    found: dict[tuple[str, str], tuple[Any, str, dict[str, Mapping[str, Any]]]] = {}
    for values in records:
        if own_names(values) and values.get("cells"):
            key = (" ".join(values["sweeps"]), values["scale"])
            title = ", ".join((values.get("titles") or {}).values())
            code, _, cells = found.setdefault(key, (values.get("code"), title, {}))
            if values.get("code") == code:  # trials of earlier versions of the file are other trials
                cells |= {"".join(trials_of_cell(cell)): cell for cell in values["cells"]}
    return [
        recorded_grid(name, scale, title, list(cells.values()), finished, failed)
        for (name, scale), (_, title, cells) in found.items()
    ]


def _newest(table: pa.Table) -> list[NewResult]:
    """Return the trials that finished last."""
    order = pc.sort_indices(table, sort_keys=[("finished_at", "descending")])
    newest = table.select(list(_NEWEST)).take(order.slice(0, NUM_NEWEST))
    times = newest["finished_at"].cast("int64").to_pylist()  # as datetimes they would make pyarrow import pandas
    rows = newest.drop_columns("finished_at").to_pylist()
    return [
        NewResult(
            label=label_of(row),
            finished_at=None if time is None else datetime.fromtimestamp(time / 1e6, UTC),
            **{name: row[name] for name in _SCORES},
        )
        for row, time in zip(rows, times, strict=True)
    ]


def label_of(row: Mapping[str, Any]) -> str:
    """Return the label of a finished trial among those of its cell, given its model, task, rate, seed and `config`."""
    words = variant(row["config"])
    model = f"{row['model']} ({words})" if words else row["model"]
    return (
        f"{model} on {row['task']} {problem(row['config'])}".rstrip()
        + f", rate {row['learning_rate']:g}, seed {row['init_seed']}"
    )
