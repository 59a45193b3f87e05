"""The invariants that are checked after every round. Each check yields a sentence for each violation."""

import functools
import io
import json
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from orch.core.safetensors_header import orch_header
from orch.store import SCHEMAS, Store, StoreWarning
from orch.store.drivers import live_drivers
from orch.store.local_files import ABANDONED_SECONDS
from tests.chaos import processes
from tests.chaos.harness import Round
from tests.chaos.planned import NUMBERS, planned_ids

ORPHAN_SECONDS = 40.0
"""Processes of Ray notice within this time that their driver is gone."""
KEPT = re.compile(r"ray|torchinductor_\w+")
"""What may stay in the folder for temporary files: the logs of Ray's sessions, and a cache of torch's."""
DAMAGED = "damaged"
ROWS = ("trials/", "superseded/")
"""Where rows of results may be."""


def check(round: Round) -> list[str]:
    """Return everything that does not hold; nothing if the round passed."""
    problems: list[str] = []
    named = _names_of_damage(round)
    for one in CHECKS:
        problems += one(round, named) if one in (every_trial_once, damage_is_named) else one(round)
    return problems


def every_trial_once(round: Round, named: str) -> Iterator[str]:
    """Each planned trial has exactly one row, and no other trial has any."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        rows = Store.open(round.place.direct).read("trials").to_pylist()
    counts = Counter(row["trial_id"] for row in rows)
    for trial_id in sorted(planned_ids() - counts.keys()):
        yield f"trial {trial_id} has no row"
    own = {row["trial_id"] for row in rows if row["model"] in round.own_models}
    for trial_id in sorted(counts.keys() - planned_ids() - own):
        yield f"trial {trial_id} was never planned"
    for trial_id, count in sorted(counts.items()):
        if count > 1:
            yield f"trial {trial_id} has {count} rows"


def numbers_are_right(round: Round) -> Iterator[str]:
    """All numbers of rows, curves and weights are those of an undisturbed run, bit for bit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        store = Store.open(round.place.direct)
        found = {table: _by_trial(store, table) for table in NUMBERS}
        attempts = {row["trial_id"]: row["attempt_id"] for row in store.read("trials").to_pylist()}
    for table, expected in _expected(round.expected).items():
        for trial_id, rows in expected.items():
            mine = found[table].get(trial_id, [])
            if table == "curves" and attempts.get(trial_id) in round.may_lack["curves"] and len(mine) < len(rows):
                continue
            if trial_id in attempts and mine != rows:
                yield f"{table} of trial {trial_id} differ from an undisturbed run: {_difference(mine, rows)}"
    for trial_id, tensors in _expected_weights(round.expected).items():
        path = f"weights/{trial_id}.safetensors"
        data = round.place.read(path)
        if data is None and trial_id in attempts and path not in round.damaged:
            yield f"trial {trial_id} has no weights"
        if data is not None and _tensors(data) != tensors:
            yield f"the weights of trial {trial_id} differ from an undisturbed run"


def nothing_written_is_gone(round: Round) -> Iterator[str]:
    """Every result that was acknowledged is still on the disk, unless it was damaged."""
    present = set()
    for path in round.place.files():
        data = round.place.read(path) if path.startswith(ROWS) and path.endswith(".parquet") else None
        if data is not None:
            table = pq.read_table(io.BytesIO(data), columns=["trial_id", "attempt_id"])
            present |= {(row["trial_id"], row["attempt_id"]) for row in table.to_pylist()}
    for trial_id, attempt_id in sorted(round.acknowledged - present):
        if attempt_id not in round.may_lack["trials"]:
            yield f"the result of attempt {attempt_id} at trial {trial_id} was acknowledged and is gone"


def damage_is_named(round: Round, named: str) -> Iterator[str]:
    """A file that was damaged is named in a warning, set aside, or replaced by a sound one."""
    for path, damaged in round.damaged.items():
        folder, name = path.split("/")[0], path.rsplit("/", 1)[-1]
        if damaged is None or folder in ("logs", "drivers") or name in named:
            continue
        if round.place.read(path) == damaged:
            yield f"{path} was damaged, and nothing says so"


def no_process_is_left(round: Round) -> Iterator[str]:
    """No process outlives the run that started it."""
    for process in round.started:
        if process.running:
            yield f"process {process.pid} still runs"
    for found in processes.orphans(round.mark, ORPHAN_SECONDS):
        yield f"process {found.pid} was left behind: {found.command[:100]}"


def no_lease_is_left(round: Round) -> Iterator[str]:
    """No driver counts as alive."""
    for driver in live_drivers(Store.open(round.place.direct)):
        yield f"a lease is left: {driver.description}"


def nothing_temporary_is_left(round: Round) -> Iterator[str]:
    """No temporary folder is left, and the hidden files of dead writers are removed once they are old."""
    temporary = round.folder / "tmp"
    if temporary.exists():
        left = sorted(path.name for path in temporary.iterdir() if not KEPT.fullmatch(path.name))
        if left:
            yield f"left in the folder for temporary files: {', '.join(left)}"
    root = Path(round.place.root)
    if round.place.name == "s3" or not root.exists():
        return
    long_ago = time.time() - 2 * ABANDONED_SECONDS
    for path in _hidden(root):
        os.utime(path, (long_ago, long_ago))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        Store.open(round.place.direct).compact()
    for path in _hidden(root):
        yield f"a dead writer's file is never removed: {path.relative_to(root)}"


def no_traceback_is_shown(round: Round) -> Iterator[str]:
    """Nobody is shown a traceback."""
    for path in round.outputs:
        text = path.read_text(errors="replace")
        if "Traceback (most recent call last)" in text:
            yield f"{path.name} shows a traceback: {text.strip().splitlines()[-1][:200]}"


CHECKS: tuple[Callable[..., Iterator[str]], ...] = (
    damage_is_named,
    every_trial_once,
    numbers_are_right,
    nothing_written_is_gone,
    no_process_is_left,
    no_lease_is_left,
    nothing_temporary_is_left,
    no_traceback_is_shown,
)
"""All that must hold, in the order in which it is checked."""


def _names_of_damage(round: Round) -> str:
    """Return all that says of files that they are damaged: outputs, warnings, logs and the names of those set aside.

    Whatever was not read until now is read here, as `orch` commands would read it.
    """
    said = [path.read_text(errors="replace") for path in round.outputs]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        store = Store.open(round.place.direct)
        for table in SCHEMAS:
            store.read(table)
        for trial_id in planned_ids():
            store.get_weights(trial_id)
            store.get_checkpoint(trial_id)
        for folder in ("sweeps", "code"):
            store.list_json(folder)
    said += [str(each.message) for each in caught]
    files = round.place.files()
    said += [path for path in files if path.startswith(f"{DAMAGED}/")]
    said += [(round.place.read(path) or b"").decode(errors="replace") for path in files if path.startswith("logs/")]
    return "\n".join(said)


def _by_trial(store: Store, table: str) -> dict[str, list[str]]:
    """Return the numbers of each trial's rows, as texts that differ where a bit does."""
    found: dict[str, list[str]] = {}
    rows = store.read(table).select(NUMBERS[table]).to_pylist()
    for row in sorted(rows, key=lambda row: row.get("step", 0)):
        found.setdefault(row["trial_id"], []).append(repr(list(row.items())))
    return found


@functools.cache
def _expected(location: str) -> dict[str, dict[str, list[str]]]:
    store = Store.open(location)
    return {table: _by_trial(store, table) for table in NUMBERS}


@functools.cache
def _expected_weights(location: str) -> dict[str, Any]:
    store = Store.open(location)
    return {trial_id: _tensors(store.get_weights(trial_id) or b"") for trial_id in planned_ids()}


def _tensors(data: bytes) -> Any:
    """Return the tensors of a safetensors file as bytes by name; None if they cannot be read."""
    from safetensors import SafetensorError, deserialize

    try:
        trial = json.dumps(orch_header(data).get("trial"), sort_keys=True)
        return trial, sorted((name, bytes(each["data"]), each["shape"]) for name, each in deserialize(data))
    except (SafetensorError, ValueError, KeyError, AttributeError):
        return None


def _hidden(root: Path) -> list[Path]:
    return [path for path in root.rglob(".*") if path.is_file()]


def _difference(found: list[str], expected: list[str]) -> str:
    if len(found) != len(expected):
        return f"{len(found)} rows instead of {len(expected)}"
    pairs = zip(found, expected, strict=True)
    one, other = next((one, other) for one, other in pairs if one != other)
    parts = zip(re.split(r", (?=\()", one), re.split(r", (?=\()", other), strict=False)
    return next((f"{mine} instead of {right}" for mine, right in parts if mine != right), "a row differs")
