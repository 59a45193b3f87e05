"""The contents of a report, gathered from a store whose sweeps may be unfinished."""

import importlib.metadata
import shlex
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from orch.analysis.agreement import agreement
from orch.analysis.board import Board, BoardCell
from orch.analysis.claims import ATLAS, CLAIMS, DEMO, ClaimsAtScale, judge_board
from orch.analysis.comparison import Comparison, compare
from orch.analysis.differing_settings import describe_settings, differing_settings
from orch.analysis.published import OOD, SWEEPS_IN_ORDER, tables_of
from orch.analysis.report.recorded import RecordedSweep, recorded_sweeps
from orch.core.counted import counted
from orch.core.records import SweepRecord, seconds_by_trial
from orch.core.settings import to_dict
from orch.running.status import FailureGroup, read_failures
from orch.store import Store
from orch.store.bundled import BUNDLED
from orch.store.trial_rows import parse_packages
from orch.sweeps.catalogue import BUILT_IN, Catalogue, resolve
from orch.sweeps.cell import Cell
from orch.sweeps.experiments import atlas, demo
from orch.sweeps.protocols import DECIDED, options_of
from orch.sweeps.recipe import RECIPE
from orch.sweeps.registry import ALL, SWEEPS
from orch.sweeps.scales import LAPTOP, SCALES, Scale, find_scale, is_scale
from orch.usercode import UserSweep
from orch.usercode.naming import newest_code, recordings

_TRIAL_SETTINGS = {"train_examples", "steps", "batch_size", "balanced", *RECIPE, *DECIDED} - {"curve_lengths"}
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
    recorded: list[RecordedSweep] = field(default_factory=list)
    """Sweeps of users' files, shown without running their code."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Paths of sweeps that the store does not have as they are reported, by name."""

    @property
    def scale(self) -> Scale:
        """The scale of the reported cells."""
        return self.board.scale

    def published_tables(self, sweep: str) -> list[str]:
        """Return the published tables that a sweep is compared with: none under a protocol."""
        return list(tables_of([sweep])) if self.scale.protocol is None else []

    @property
    def scale_names(self) -> str:
        """The scales of all its sweeps. The atlas is the same at every scale."""
        built_in = "its own" if self._only_atlas else self.scale.name
        scales = [*(each.scale for each in self.recorded), *([built_in] if self.sweeps else [])]
        return " and ".join(dict.fromkeys(scales)) or self.scale.name

    @property
    def _only_atlas(self) -> bool:
        return self.scale.protocol is None and {sweep.name for sweep in self.sweeps} == {ATLAS}

    @property
    def done(self) -> set[str]:
        """Ids of the finished trials of the store."""
        return set(self.board.finished)

    @property
    def num_done(self) -> int:
        """Number of finished trials, each counted once."""
        return sum(origin.num_trials for origin in self.origins)

    @property
    def num_planned(self) -> int:
        """Number of trials of the sweeps, including those that wait for the results of others."""
        waiting = [each.joined.num_waiting for sweep in self.sweeps for each in sweep.cells]
        return len(self.trial_ids) + sum([*waiting, *(each.num_waiting for each in self.recorded)])

    @property
    def names(self) -> list[str]:
        """The names of all its sweeps, users' own first."""
        own = [name for each in self.recorded for name in each.name.split()]
        return list(dict.fromkeys([*own, *(sweep.name for sweep in self.sweeps)]))

    @property
    def title(self) -> str:
        """The heading of the page: the paper's question, or the titles of the sweeps if none of them is the paper's."""
        if any(sweep.name in SWEEPS for sweep in self.sweeps) or not self.names:
            return "Which sequence models can track state?"
        titles = [*(each.title for each in self.recorded), *(sweep.title for sweep in self.sweeps)]
        return "; ".join(dict.fromkeys(filter(None, titles))) or ", ".join(self.names)

    @property
    def example_trial(self) -> str | None:
        """The id of a finished trial of the report; None if there is none."""
        scores = (each.joined.summary.scores for sweep in self.sweeps for each in sweep.cells)
        best = next((found[OOD].best_trial for found in scores if found is not None), None)
        return best or min((key for each in self.recorded for key in each.trial_ids & self.done), default=None)

    def command(self, verb: str, sweep: str, scale: str) -> str:
        """Return a command about a sweep that works when it is pasted into a shell."""
        names = [self.files.get(name, name) for name in sweep.split()]
        place = "" if verb == "sweep" and self.location == BUNDLED else self.store_option
        return shlex.join(["orch", verb, *names, *options_of(scale)]) + place

    @property
    def store_option(self) -> str:
        """The option that names the store, as it is written in a shell."""
        return f" --store {shlex.quote(self.location)}"

    @property
    def summary(self) -> str:
        """The report in one line."""
        trials = f"{self.num_done:,} of {counted(self.num_planned, 'trial')}"
        counts = f"{', '.join(self.names)} at {self.scale_names} scale, {trials}"
        return f"{counts}; {agreement(self.comparisons)}" if self.comparisons else counts


def collect(
    store: Store,
    sweeps: Sequence[str] = (),
    scale: str | None = None,
    catalogue: Catalogue = BUILT_IN,
    files: Mapping[str, str] = MappingProxyType({}),
) -> StudyReport:
    """Gather a report about these sweeps, or by default about those that were run on the store.

    Without a scale, the report is about the scale that most of the store's trials belong to. Sweeps of users' files are
    run only if they are in `sweeps`; by default, a report has what the store itself says of them. `files` has the
    paths of those that were read from files, by name.
    """
    store.check_exists()
    board = Board.read(store, find_scale(scale or most_common_scale(store)), catalogue)
    recorded = [] if sweeps else recorded_sweeps(store, board.failed, scale)
    chosen = resolve(sweeps, catalogue) if sweeps else _sweeps_of_store(store, board, alone=not recorded)
    names = sorted(chosen, key=_place)
    found = [sweep_result(name, board) for name in names]
    trial_ids = {trial_id for sweep in found for each in sweep.cells for trial_id in each.joined.cell.trial_ids}
    trial_ids |= {trial_id for each in recorded for trial_id in each.trial_ids}
    return StudyReport(
        board=board,
        location=store.location if "://" in store.uri else store.uri,
        made_at=datetime.now(UTC),
        version=importlib.metadata.version("orch"),
        sweeps=found,
        trial_ids=trial_ids,
        claims=relevant_claims(board, names),
        comparisons=compare(board, tables_of(names)),
        origins=_origins(store, trial_ids),
        failures=[group for group in read_failures(store) if not trial_ids.isdisjoint(group.trial_ids)],
        recorded=recorded,
        files=_not_recorded(store, files, board),
    )


def _not_recorded(store: Store, files: Mapping[str, str], board: Board) -> dict[str, str]:
    """Return the files whose sweeps the store does not have, or has in another version."""
    found = {}
    for name, path in files.items():
        sweep = board.catalogue.sweeps[name]
        assert isinstance(sweep, UserSweep)
        if newest_code(store, name, board.scale.name) != sweep.code:
            found[name] = path
    return found


def relevant_claims(board: Board, sweeps: Collection[str]) -> list[ClaimsAtScale]:
    """Judge the claims that these sweeps have results for. The demo and the atlas have scales of their own."""
    relevant = [claim for claim in CLAIMS if not claim.sweeps.isdisjoint(sweeps)]
    if board.scale.protocol is not None:
        return []  # the paper's claims are about the sweeps as they are
    found = [judge_board(board, relevant)] if relevant and not board.scale.sparse else []
    own = {DEMO: demo.SMALL, ATLAS: atlas.SMALL}
    return [*found, *(judge_board(board.at(scale)) for name, scale in own.items() if name in sweeps)]


def most_common_scale(store: Store) -> str:
    """Return the scale of the sweeps that ask for most of the finished trials."""
    done, counts = store.done(), dict.fromkeys(SCALES, 0)
    for values in store.list_json("sweeps", SweepRecord).values():
        if is_scale(values["scale"]):
            finished = sum(trial_id in done for trial_id in seconds_by_trial(values))
            counts[values["scale"]] = counts.get(values["scale"], 0) + 1 + finished
    return max(counts, key=counts.__getitem__) if any(counts.values()) else LAPTOP.name


def _sweeps_of_store(store: Store, board: Board, alone: bool) -> list[str]:
    """Return the paper's sweeps that were run on this store at the board's scale and have results, if any of them has.

    If there is no record of any, and nothing else to report (`alone`), these are all sweeps that have results.
    """
    asked = [values["sweeps"] for values in recordings(store) if values["scale"] == board.scale.name]
    run = resolve(name for names in asked for name in names if name == ALL or name in SWEEPS)
    names = run or (resolve([ALL]) if alone else [])
    return [name for name in names if any(each.finished for each in board.cells(name))] or names


def _place(sweep: str) -> int:
    """Return the place of a sweep in a report: users' own first, then the paper's in its order, then ours."""
    if sweep in SWEEPS_IN_ORDER:
        return SWEEPS_IN_ORDER.index(sweep)
    return len(SWEEPS_IN_ORDER) if sweep in SWEEPS else -1


def sweep_result(name: str, board: Board) -> SweepResult:
    """Return the cells of a sweep with their results, and with words for the settings in which they differ."""
    found = board.cells(name)
    cells = list(map(CellResult, found, _distinguished([each.cell for each in found])))
    sweep = board.catalogue.sweeps[name]
    return SweepResult(name, sweep.title, sweep.reproduces, cells)


def _distinguished(cells: Sequence[Cell]) -> list[str]:
    """Describe each cell by the settings in which it differs from others of its model.

    On one task all settings count. Between tasks those of the model do, so that a name in the table is one model; only
    its width may depend on the task.
    """
    grouped = [_group_and_settings(cell) for cell in cells]
    on_task = differing_settings(grouped)
    models = [(cell.example.model.name, cell.shown_variant) for cell in cells]
    of_model = differing_settings(zip(models, (to_dict(cell.example.model) for cell in cells), strict=True))
    texts = []
    for model, (group, settings) in zip(models, grouped, strict=True):
        names = {*on_task[group], *of_model[model]} - ({"width"} - {*on_task[group]})
        texts.append(describe_settings(settings, [name for name in settings if name in names]))
    return texts


def _group_and_settings(cell: Cell) -> tuple[Hashable, dict[str, Any]]:
    """Return what a table shows of a cell in any case, and the settings that it shows where they differ."""
    trial = cell.example
    shown = {name: value for name, value in to_dict(trial).items() if name in _TRIAL_SETTINGS}
    return (trial.model.name, cell.shown_variant, trial.task), to_dict(trial.model) | shown


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
        **{name: row[name] for name in _ORIGIN_COLUMNS} | {"packages": parse_packages(row["packages"])},
        num_trials=row["trial_id_count"],
        seconds=row["seconds_sum"] or 0.0,
        first=row["finished_at_min"],
        last=row["finished_at_max"],
    )
