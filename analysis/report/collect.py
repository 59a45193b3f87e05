"""What a report says, gathered from a store that may be half filled."""

import importlib.metadata
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orch.analysis.aggregate import COLUMNS, CellSummary, summarise
from orch.analysis.agreement import agreement
from orch.analysis.claims import CLAIMS, DEMO, ClaimsAtScale, ask_store
from orch.analysis.comparison import Comparison, compare
from orch.analysis.published import TABLES
from orch.core.settings import to_dict
from orch.running.status import FailureGroup, read_failures
from orch.store import Store
from orch.store.bundled import no_results
from orch.store.failed_trials import failed_trials
from orch.sweeps.cell import Cell
from orch.sweeps.registry import ALL, SWEEPS, resolve
from orch.sweeps.scales import SCALES, Scale
from orch.sweeps.selection import Results, Row

_TOLD = {"train_examples", "max_inputs", "steps", "batch_size", "test_length", "balanced"}
_WHERE_IT_RAN = ("host", "device", "threads", "mamba_kernel", "git_commit", "git_dirty", "packages")


@dataclass(frozen=True, slots=True)
class CellResult:
    cell: Cell
    summary: CellSummary
    settings: str = ""
    """What sets it apart from other cells of the same model on the same task."""


@dataclass(frozen=True, slots=True)
class SweepResult:
    name: str
    title: str
    reproduces: str
    cells: list[CellResult]

    @property
    def num_planned(self) -> int:
        return sum(each.summary.num_planned for each in self.cells)

    @property
    def num_done(self) -> int:
        return sum(each.summary.num_done for each in self.cells)

    @property
    def num_failed(self) -> int:
        return sum(each.summary.num_failed for each in self.cells)


@dataclass(frozen=True, slots=True)
class Origin:
    """Trials that ran on one machine with one set of code and packages."""

    host: str
    device: str
    threads: int | None
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
    location: str
    scale: Scale
    made_at: datetime
    version: str
    sweeps: list[SweepResult]
    claims: list[ClaimsAtScale]
    comparisons: list[Comparison]
    origins: list[Origin]
    failures: list[FailureGroup]

    @property
    def trial_ids(self) -> set[str]:
        """All that its sweeps ask for, finished or not."""
        return {trial_id for sweep in self.sweeps for each in sweep.cells for trial_id in each.cell.trial_ids}

    @property
    def num_done(self) -> int:
        return sum(origin.num_trials for origin in self.origins)

    @property
    def num_planned(self) -> int:
        """With those that still wait for the results of others."""
        cells = [each.cell for sweep in self.sweeps for each in sweep.cells]
        return len(self.trial_ids) + sum(len(cell.trials) - len(cell.trial_ids) for cell in cells)

    @property
    def summary(self) -> str:
        """In a line."""
        names = ", ".join(sweep.name for sweep in self.sweeps)
        told = f"{names} at {self.scale.name} scale, {self.num_done:,} of {self.num_planned:,} trials"
        return f"{told}; {agreement(self.comparisons)}" if self.comparisons else told


def collect(store: Store, sweeps: Sequence[str] = (), scale: str | None = None) -> StudyReport:
    """About these sweeps, or whatever the store was asked for; at this scale, or the one most of its trials are of."""
    if not store.exists():
        raise no_results(store.location)
    finished = _finished(store)
    chosen = SCALES[scale or _commonest_scale(store, finished)]
    names = resolve(sweeps) if sweeps else _asked_for(store, chosen.name)
    failed = failed_trials(store, finished)
    results = Results(lambda: finished)
    found = [_sweep_result(name, chosen, finished, failed, results) for name in names]
    tables = [table.name for table in TABLES.values() if table.sweep in names]
    report_ids = {trial_id for sweep in found for each in sweep.cells for trial_id in each.cell.trial_ids}
    return StudyReport(
        location=store.location,
        scale=chosen,
        made_at=datetime.now(UTC),
        version=importlib.metadata.version("orch"),
        sweeps=found,
        claims=_claims(store, chosen, names),
        comparisons=compare(chosen, finished, failed, tables, results),
        origins=_origins(store, report_ids),
        failures=[group for group in read_failures(store) if not report_ids.isdisjoint(group.trial_ids)],
    )


def _claims(store: Store, scale: Scale, sweeps: Collection[str]) -> list[ClaimsAtScale]:
    """Those that these sweeps have something to say about. The demo is a scale of its own."""
    about = [claim for claim in CLAIMS if not claim.sweeps.isdisjoint(sweeps)]
    found = ask_store(store, scale.name, about) if about and not scale.sparse else []
    return [*found, *(ask_store(store, DEMO) if DEMO in sweeps else [])]


def _finished(store: Store) -> dict[str, Row]:
    table = store.read("trials", COLUMNS)
    columns = [column.to_pylist() for column in table.columns]
    return {values[0]: dict(zip(COLUMNS, values, strict=True)) for values in zip(*columns, strict=True)}


def _commonest_scale(store: Store, finished: Mapping[str, Row]) -> str:
    counts = dict.fromkeys(SCALES, 0)
    for values in store.list_json("sweeps").values():
        if values["scale"] in counts:
            counts[values["scale"]] += 1 + sum(trial_id in finished for trial_id in values["seconds"])
    return max(counts, key=counts.__getitem__) if any(counts.values()) else "laptop"


def _asked_for(store: Store, scale: str) -> list[str]:
    """The sweeps that were run on this store at a scale; if that is not on record, all."""
    asked = [values["sweeps"] for values in store.list_json("sweeps").values() if values["scale"] == scale]
    # A sweep of the user's own is reported when its file is named: code that lies in a store is not run for a report.
    known = [name for names in asked for name in names if name == ALL or name in SWEEPS]
    return sorted(resolve(known)) or resolve([ALL])


def _sweep_result(
    name: str, scale: Scale, finished: Mapping[str, Row], failed: Collection[str], results: Results
) -> SweepResult:
    found = list(SWEEPS[name].cells(scale, results))
    cells = []
    for cell, settings in zip(found, _telling_settings(found), strict=True):
        rows = [finished[trial_id] for trial_id in cell.trial_ids if trial_id in finished]
        num_failed = sum(trial_id in failed and trial_id not in finished for trial_id in cell.trial_ids)
        cells.append(CellResult(cell, summarise(rows, len(cell.trials), num_failed), settings))
    return SweepResult(name, SWEEPS[name].title, SWEEPS[name].reproduces, cells)


def _telling_settings(cells: Sequence[Cell]) -> list[str]:
    """For each cell the settings in which it differs from another of the same model, variant and task."""
    alike: dict[Any, list[int]] = {}
    described = []
    for position, cell in enumerate(cells):
        trial = cell.example
        alike.setdefault((trial.model.name, cell.variant, trial.task), []).append(position)
        described.append(to_dict(trial.model) | {key: value for key, value in to_dict(trial).items() if key in _TOLD})
    texts = [""] * len(cells)
    for group in alike.values():
        names = [name for name in described[group[0]] if len({str(described[each][name]) for each in group}) > 1]
        for position in group:
            texts[position] = ", ".join(f"{name.replace('_', ' ')} {described[position][name]}" for name in names)
    return texts


def _origins(store: Store, trial_ids: Collection[str]) -> list[Origin]:
    """Where the trials ran, the busiest first."""
    import pyarrow as pa

    table = store.read("trials", ["trial_id", *_WHERE_IT_RAN, "seconds", "finished_at"])
    wanted = pa.array([trial_id in trial_ids for trial_id in table["trial_id"].to_pylist()], pa.bool_())
    measures = [("trial_id", "count"), ("seconds", "sum"), ("finished_at", "min"), ("finished_at", "max")]
    grouped = table.filter(wanted).group_by(list(_WHERE_IT_RAN)).aggregate(measures)
    found = [_origin(row) for row in grouped.to_pylist()]
    return sorted(found, key=lambda origin: -origin.num_trials)


def _origin(row: Mapping[str, Any]) -> Origin:
    return Origin(
        **{name: row[name] for name in _WHERE_IT_RAN} | {"packages": json.loads(row["packages"] or "{}")},
        num_trials=row["trial_id_count"],
        seconds=row["seconds_sum"] or 0.0,
        first=row["finished_at_min"],
        last=row["finished_at_max"],
    )
