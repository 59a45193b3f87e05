"""CSV files: `trials.csv`, a row for each trial, and `curves.csv`, a row for each evaluation of a trial."""

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from orch.analysis.exports.exporter import ExportedTrial, Exporter
from orch.core.atomic_write import refuse_link
from orch.store.columns import SCHEMAS, TRIALS

TRIALS_FILE, CURVES_FILE = "trials.csv", "curves.csv"


def known(folder: Path) -> set[str]:
    """Return the ids in `trials.csv`, which is written last."""
    return {row["trial_id"] for row in _rows(folder / TRIALS_FILE)}


def write(folder: Path, trials: Iterable[ExportedTrial]) -> None:
    """Write both files anew with the trials added, and put them in place of the old ones."""
    before = known(folder)
    kept = (row for row in _rows(folder / CURVES_FILE) if row["trial_id"] in before)
    new: list[dict[str, Any]] = []

    def curves() -> Iterator[Mapping[str, Any]]:
        yield from kept
        for trial in trials:
            new.append(trial.row)
            yield from trial.curve

    _replace(folder / CURVES_FILE, SCHEMAS["curves"].names, curves())
    rows = [*_rows(folder / TRIALS_FILE), *new]
    names = dict.fromkeys([*(field.name for field in TRIALS), *(name for row in rows for name in row)])
    _replace(folder / TRIALS_FILE, list(names), rows)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    if path.exists():
        with path.open(newline="") as file:
            yield from csv.DictReader(file)


def _replace(path: Path, names: list[str], rows: Iterable[Mapping[str, Any]]) -> None:
    refuse_link(path)
    aside = path.with_name(f".{path.name}")
    with aside.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows({name: _text(value) for name, value in row.items()} for row in rows)
    os.replace(aside, path)


def _text(value: Any) -> Any:
    """Return a list as JSON and any other value as it is; what is missing becomes an empty field."""
    return json.dumps(value) if isinstance(value, list | dict) else value


EXPORTER = Exporter(about="two CSV files, trials and curves", known=known, write=write)
