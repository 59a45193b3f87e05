"""Writing the finished trials of a study into a folder for another tool, each trial once."""

import csv
import importlib
import json
import pkgutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orch.analysis.exports.exporter import ExportedTrial, Exporter
from orch.analysis.selected_trials import selected_trials
from orch.analysis.study import Study
from orch.core.atomic_write import write_atomically
from orch.core.errors import OrchError, UnknownName
from orch.core.reading import parse_json, read_text
from orch.store.columns import PROVENANCE, TRIALS
from orch.sweeps.scales import LAPTOP

_PACKAGE = __name__.rpartition(".")[0]
MARK = "orch-export.json"
"""File that says which target a folder was written for."""
_METRICS = (
    *("train_loss", "validation_loss", "validation_accuracy", "validation_accuracy_raw", "ood_accuracy"),
    *("ood_accuracy_raw", "steps_trained", "num_parameters", "seconds", "wall_seconds", "device_seconds"),
    "peak_memory_mb",
)
_NOT_SETTINGS = {field.name for field in PROVENANCE} | {"trial_id", "config", "length_curve"}
_TAGS = ("stop_reason", "task_revision", "model_revision", "trainer_revision")


@dataclass(frozen=True, slots=True)
class Exported:
    """The outcome of an export."""

    num_new: int
    num_known: int
    """Number of chosen trials that the folder had already."""


def find_exporters() -> dict[str, Exporter]:
    """Return the targets of this package by the names of their files."""
    found: dict[str, Exporter] = {}
    for module in pkgutil.iter_modules(importlib.import_module(_PACKAGE).__path__):
        exporter = getattr(importlib.import_module(f"{_PACKAGE}.{module.name}"), "EXPORTER", None)
        if isinstance(exporter, Exporter):
            found[module.name.removesuffix("_").replace("_", "-")] = exporter
    return dict(sorted(found.items()))


def export(
    study: Study,
    target: str,
    folder: Path,
    sweeps: Sequence[str] = (),
    scale: str = LAPTOP.name,
    where: Collection[str] = (),
) -> Exported:
    """Add the chosen trials that a folder does not have yet. A repeated export adds nothing."""
    exporters = find_exporters()
    if target not in exporters:
        raise UnknownName("export target", target, exporters)
    exporters[target].check(target)
    trials = selected_trials(study, sweeps, scale, where)
    if not trials.num_rows:
        none = f"no finished trial of {study.store.location} was chosen"
        raise OrchError(f"{none}: widen --where, or run orch sweep first")
    _claim(folder, target)
    try:
        known = exporters[target].known(folder)
        new = trials.filter(pc.invert(pc.is_in(trials["trial_id"], pa.array(sorted(known), pa.string()))))
        if new.num_rows:
            exporters[target].write(folder, exported_trials(new, study.curves))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise OrchError(f"{folder} cannot be written ({reason}): name another folder") from error
    return Exported(new.num_rows, trials.num_rows - new.num_rows)


def _claim(folder: Path, target: str) -> None:
    """Mark a folder as that of a target, or raise an error if it is in use for something else."""
    mark = folder / MARK
    try:
        if mark.exists():
            before = parse_json(read_text(mark)).get("target")
            if before != target:
                raise OrchError(f"{folder} has an export for {before}: name another folder for {target}")
            return
        if folder.exists() and any(folder.iterdir()):
            raise OrchError(f"{folder} is in use for something else: name a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(mark, json.dumps({"target": target}).encode())
    except (OSError, ValueError, AttributeError) as error:
        raise OrchError(f"{folder} cannot be used for an export ({error}): name a new folder") from error


def exported_trials(trials: pa.Table, curves: pa.Table) -> Iterator[ExportedTrial]:
    """Yield trials with their curves, one at a time, so that a store of a million points needs no more memory."""
    ids = trials["trial_id"].to_pylist()
    number = pc.index_in(curves["trial_id"], pa.array(ids, pa.string()))
    mine = curves.append_column("number", number).filter(pc.is_valid(number))
    order = np.lexsort((mine["step"].to_numpy(), mine["number"].to_numpy()))
    ordered = mine.take(pa.array(order))
    ends = np.searchsorted(ordered["number"].to_numpy(), np.arange(len(ids) + 1))
    points = ordered.drop_columns(["number"])
    for place in range(len(ids)):
        (row,) = trials.slice(place, 1).to_pylist()
        yield _exported(row, points.slice(ends[place], ends[place + 1] - ends[place]).to_pylist())


def _exported(row: dict[str, Any], curve: list[dict[str, Any]]) -> ExportedTrial:
    measured = {name: row[name] for name in _METRICS}
    measured |= {f"accuracy_{point['length']}": point["accuracy"] for point in row["length_curve"] or ()}
    not_settings = {*_NOT_SETTINGS, *_METRICS, *_TAGS, "accuracy_100", "accuracy_200"}
    names = [field.name for field in PROVENANCE if field.name not in measured]
    tags = {name: row[name] for name in (*_TAGS, *names)}
    return ExportedTrial(
        row=row,
        settings={name: value for name, value in row.items() if name not in not_settings and value is not None},
        metrics={name: float(value) for name, value in measured.items() if value is not None},
        tags={name: str(value) for name, value in tags.items() if value is not None},
        curve=curve,
    )


CURVE_METRICS = ("train_loss", "validation_loss", "validation_accuracy")
"""Columns of a curve that are metrics."""


def schema_of(rows: Sequence[dict[str, Any]]) -> pa.Schema:
    """Return the columns of rows of `trials`: the built-in ones with their types and descriptions, then the user's."""
    built_in = {field.name: field for field in TRIALS}
    extra = [name for name in rows[0] if name not in built_in]
    inferred = pa.Table.from_pylist(list(rows)).schema if extra else pa.schema([])
    return pa.schema([*TRIALS, *(inferred.field(name) for name in extra)])
