"""Parquet files with types and descriptions: folders `trials` and `curves`, to which each export adds a part."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from orch.analysis.exports.export import schema_of
from orch.analysis.exports.exporter import ExportedTrial, Exporter
from orch.store.columns import SCHEMAS

TABLES = ("curves", "trials")
"""Folders in the order in which they are written: what has trials has their curves."""
AT_ONCE = 2_000
"""Number of trials in a part."""


def known(folder: Path) -> set[str]:
    """Return the ids of all trials in the folder."""
    parts = sorted((folder / "trials").glob("*.parquet"))
    tables = (pq.read_table(part, columns=["trial_id"]) for part in parts)
    return {trial_id for table in tables for trial_id in table["trial_id"].to_pylist()}


def write(folder: Path, trials: Iterable[ExportedTrial]) -> None:
    """Add parts with these trials and remove curves whose trials an interrupted export did not get to write."""
    for table in TABLES:
        (folder / table).mkdir(exist_ok=True)
    for part in (folder / "curves").glob("*.parquet"):
        if not (folder / "trials" / part.name).exists():
            part.unlink()
    batch: list[ExportedTrial] = []
    for trial in trials:
        batch.append(trial)
        if len(batch) == AT_ONCE:
            _write_part(folder, batch)
            batch = []
    if batch:
        _write_part(folder, batch)


def _write_part(folder: Path, trials: list[ExportedTrial]) -> None:
    name = f"part-{secrets.token_hex(8)}.parquet"
    curves = [point for trial in trials for point in trial.curve]
    rows = [trial.row for trial in trials]
    tables = {
        "curves": pa.Table.from_pylist(curves, SCHEMAS["curves"]),
        "trials": pa.Table.from_pylist(rows, schema_of(rows)),
    }
    for table in TABLES:
        aside = folder / table / f".{name}"
        pq.write_table(tables[table], aside, compression="zstd")
        os.replace(aside, folder / table / name)


EXPORTER = Exporter(about="Parquet files with types and descriptions, trials and curves", known=known, write=write)
