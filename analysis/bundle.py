"""A bundle: a copy of a store, small enough to ship, with only what tables, figures and claims need."""

import os
import secrets
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orch import models, tasks
from orch.analysis.board import Board
from orch.core.atomic_write import refuse_link
from orch.core.checksum import checksum
from orch.core.errors import OrchError
from orch.search import history as searches
from orch.store import SCHEMAS, Store
from orch.store.bundled import MARK
from orch.store.failed_trials import failed_trials
from orch.store.records import parse_record
from orch.sweeps.measured import Row
from orch.sweeps.registry import ALL, SWEEPS
from orch.sweeps.scales import SCALES

ROWS_AT_ONCE = 100_000


@dataclass(frozen=True, slots=True)
class Bundle:
    """The size of a bundle that was written."""

    num_trials: int
    num_files: int
    num_bytes: int


def bundle(stores: Sequence[Store], folder: Path, curve_points: int = 50) -> Bundle:
    """Copy the results of built-in models on built-in tasks, and the record of sweeps, into a folder.

    Failed attempts are copied without their tracebacks.
    """
    for store in stores:
        store.check_exists()
    refuse_link(folder)
    if folder.exists() and not _is_bundle(folder):
        raise OrchError(f"{folder} is in use for something else: name a new folder with --output")
    temporary, replaced = (folder.with_name(f".{folder.name}.{secrets.token_hex(4)}") for _ in range(2))
    try:
        target = Store.open(temporary)
        for store in stores:
            _fill(target, store, curve_points)
        num_trials = len(target.done())
        target.compact(min_parts=2)
        written = {path.relative_to(temporary).as_posix(): path for path in temporary.rglob("*") if path.is_file()}
        listed = {name: checksum([path.read_bytes()]) for name, path in sorted(written.items())}
        target.put_json(MARK, {"num_trials": num_trials, "files": listed})
        if folder.exists():
            os.replace(folder, replaced)
        os.replace(temporary, folder)
        shutil.rmtree(replaced, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return Bundle(num_trials, len(files), sum(path.stat().st_size for path in files))


def _is_bundle(folder: Path) -> bool:
    """Return whether a folder is empty, or has a bundle and nothing else."""
    names = {path.name for path in folder.iterdir()}
    if not names:
        return True
    try:
        marked = "num_trials" in parse_record((folder / MARK).read_bytes())
    except (OSError, ValueError):
        return False
    return marked and names <= {MARK, *SCHEMAS, "weights", "sweeps", searches.FOLDER}


def _fill(target: Store, store: Store, curve_points: int) -> None:
    trials = [
        row for row in _rows(store, "trials") if row["model"] in models.REGISTRY and row["task"] in tasks.REGISTRY
    ]
    kept = {row["trial_id"] for row in trials}
    _write(target, "curves", _thinned([row for row in _rows(store, "curves") if row["trial_id"] in kept], curve_points))
    _write(target, "trials", trials)
    failed = failed_trials(store, store.done())
    attempts = [row | {"traceback": None} for row in _rows(store, "attempts") if row["trial_id"] in failed]
    _write(target, "attempts", attempts)
    for name, values in store.list_json("sweeps").items():
        if not values.get("code") and all(sweep == ALL or sweep in SWEEPS for sweep in values["sweeps"]):
            target.put_json(f"sweeps/{name}.json", values)
    # A search's history is a sequence of files: the files of two stores must not be mixed.
    known = {_search_of(path) for path in target.list_files(searches.FOLDER)}
    for path in store.list_files(searches.FOLDER):
        if _search_of(path) not in known and (values := store.get_json(path)) is not None:
            target.put_json(path, values)
    for trial_id, weights in _weights_of_angles(store, {row["trial_id"]: row for row in trials}):
        target.put_weights(trial_id, weights)


def _search_of(path: str) -> str:
    return path.removeprefix(f"{searches.FOLDER}/").split("/")[0]


def _rows(store: Store, table: str) -> list[dict[str, Any]]:
    """Return a table's rows with the columns that every store has; other columns belong to the user's own models."""
    rows: list[dict[str, Any]] = store.read(table).select(SCHEMAS[table].names).to_pylist()
    return rows


def _write(target: Store, table: str, rows: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        target.write(table, rows[start : start + ROWS_AT_ONCE])


def _thinned(curves: Sequence[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Return at most `most` rows of each trial, always with the first and the last."""
    by_trial: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in curves:
        by_trial[row["trial_id"]].append(row)
    found = []
    for rows in by_trial.values():
        rows.sort(key=lambda row: row["step"])
        num_kept = min(most, len(rows))
        places = {round(place * (len(rows) - 1) / max(1, num_kept - 1)) for place in range(num_kept)}
        found += [rows[place] for place in sorted(places)]
    return found


def _weights_of_angles(store: Store, finished: Mapping[str, Row]) -> Iterator[tuple[str, bytes]]:
    """Yield the trial, with its weights, whose angles the figure shows at each scale."""
    for scale in SCALES.values():
        board = Board(scale, finished, store=store)
        for cell in board.cells("angles"):
            if (best := board.best_with_weights(cell)) is not None:
                yield best[0]["trial_id"], best[1]
