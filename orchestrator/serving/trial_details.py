"""Everything that a store knows about one trial: settings, curves, provenance, attempts, and how to run it again."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from orch.analysis.table_formats import readable
from orch.core.errors import OrchError
from orch.running.status import FailureGroup, TrialOnWorker
from orch.serving.overview import LOST, Overview, label_of
from orch.store import Store
from orch.store.columns import PROVENANCE
from orch.store.deduplication import text_scalar
from orch.sweeps.measured import Row
from orch.sweeps.trial import parse_config

Facts = list[tuple[str, str]]
"""Names with their values, as texts."""
_SCORES = (
    "stop_reason", "steps_trained", "train_loss", "validation_loss", "validation_accuracy", "ood_accuracy",
    "num_parameters", "seconds",
)  # fmt: skip
_ATTEMPT = ("at", "event", "outcome", "worker", "device", "step", "error_signature")


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another trial of the same cell."""

    trial_id: str
    row: Row | None
    """Its result; None if it has none."""
    state: str


@dataclass(frozen=True, slots=True)
class TrialDetails:
    """A trial, finished or not."""

    trial_id: str
    label: str
    state: str
    """finished, running, failed, lost or not started."""
    scores: Facts = field(default_factory=list)
    settings: Facts = field(default_factory=list)
    provenance: Facts = field(default_factory=list)
    curve: tuple[tuple[int, float | None, float | None], ...] = ()
    """Step, loss and accuracy of every validation."""
    lengths: tuple[tuple[int, float], ...] = ()
    """Accuracy at each tested length."""
    attempts: tuple[Mapping[str, str], ...] = ()
    message: str = ""
    traceback: str = ""
    running: TrialOnWorker | None = None
    siblings: tuple[Sibling, ...] = ()
    command: str = ""
    query: str = ""


def read_trial(store: Store, trial_id: str, overview: Overview) -> TrialDetails:
    """Gather everything about a trial; raise an error if the store has never heard of it."""
    result = _rows_of(store, "trials", trial_id)
    running = next((each for each in overview.status.running if each.trial_id == trial_id), None)
    attempts = sorted(_rows_of(store, "attempts", trial_id), key=lambda row: row["at"])
    placed = overview.tile_of(trial_id)
    if not (result or running or attempts or placed):
        raise OrchError(f"the store has no trial {trial_id}: copy an id from a table of this page")
    failed = next((group for group in overview.failures if trial_id in group.trial_ids), None)
    last_error = next((row for row in reversed(attempts) if row["error_message"]), None)
    where = shlex.quote(store.location if "://" in store.uri else store.uri)
    row = result[0] if result else None
    state = "finished" if row else "running" if running else _state(failed) if failed else "not started"
    settings = parse_config(row["config"]) if row else placed.tile.settings if placed else {}
    return TrialDetails(
        trial_id=trial_id,
        label=_label(row, running, placed.name if placed else trial_id),
        state=state,
        scores=_facts(row, _SCORES) if row else [],
        settings=_settings(settings),
        provenance=_facts(row, [column.name for column in PROVENANCE]) if row else [],
        curve=_curve(store, trial_id, running, finished=row is not None),
        lengths=tuple(
            (each["length"], each["accuracy"])
            for each in (row["length_curve"] or () if row else ())
            if each["accuracy"] is not None
        ),
        attempts=tuple({name: readable(each[name]) for name in _ATTEMPT} for each in attempts),
        message="" if state == "finished" or last_error is None else str(last_error["error_message"]),
        traceback="" if state == "finished" or last_error is None else str(last_error["traceback"] or ""),
        running=running,
        siblings=_siblings(placed.tile.trial_ids, trial_id, overview) if placed else (),
        command=f"orch train --trial {trial_id} --store {where}",
        query=f"orch query \"SELECT * FROM trials WHERE trial_id = '{trial_id}'\" --store {where}",
    )


def _rows_of(store: Store, table: str, trial_id: str, columns: list[str] | None = None) -> list[dict[str, Any]]:
    data = store.read(table, columns)
    rows: list[dict[str, Any]] = data.filter(pc.equal(data["trial_id"], text_scalar(trial_id))).to_pylist()
    return rows


def _curve(
    store: Store, trial_id: str, running: TrialOnWorker | None, finished: bool
) -> tuple[tuple[int, float | None, float | None], ...]:
    if not finished:
        return running.progress.curve if running and running.progress else ()
    columns = ["trial_id", "step", "train_loss", "validation_accuracy"]
    rows = sorted(_rows_of(store, "curves", trial_id, columns), key=lambda row: row["step"])
    return tuple((row["step"], row["train_loss"], row["validation_accuracy"]) for row in rows)


def _label(row: Mapping[str, Any] | None, running: TrialOnWorker | None, other: str) -> str:
    if row is not None:
        return label_of(row)
    return running.progress.label if running and running.progress and running.progress.label else other


def _settings(config: Mapping[str, Any], before: str = "") -> Facts:
    """Return settings by name, those of the task and the model with its word in front."""
    found: Facts = []
    for name, value in config.items():
        if isinstance(value, Mapping):
            found += _settings(value, f"{name} ")
        elif value is not None:
            found.append((f"{before}{name}".replace("_", " "), readable(value)))
    return found


def _facts(row: Mapping[str, Any], names: "list[str] | tuple[str, ...]") -> Facts:
    return [(name.replace("_", " "), readable(row[name])) for name in names if row.get(name) is not None]


def _state(group: FailureGroup) -> str:
    return LOST if group.only_lost else "failed"


def _siblings(trial_ids: tuple[str, ...], trial_id: str, overview: Overview) -> tuple[Sibling, ...]:
    running = {each.trial_id for each in overview.status.running}
    failed = {key: _state(group) for group in overview.failures for key in group.trial_ids}
    found = []
    for key in trial_ids:
        row = overview.results.finished.get(key)
        state = "running" if key in running else failed.get(key, "to do")
        found.append(Sibling(key, row, "finished" if row else state))
    return tuple(each for each in found if each.trial_id != trial_id)
