"""Records and parts of a store that were changed by somebody."""

import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from orch.store import SCHEMAS
from orch.store.records import parse_record, to_record, under_checksum
from tests.hostile.plan import STORE, Plan, as_json, make_special, plan
from tests.hostile.values import STEERING, plain

READING = tuple(
    tuple(shlex.split(line))
    for line in """
status
status --json
failures
failures --json
logs
logs --json
watch --once
query 'FROM cells' --format table
query 'FROM attempts' --format json
query 'FROM trials'
results
plan demo
plan own-sweep
search --show
search --show abc --json
report --format markdown
report --output page.html
claims
sweeps
checklist
reproduction
discard --where modulus=3 --reason x --yes
compact
export csv out
merge runs --store other
train --trial nosuch
bundle --output made
verify
verify --json
""".strip().splitlines()
)
"""Commands that read a store and end by themselves."""
_RAW = (
    b"",
    b"{",
    b"null",
    b"[]",
    b"5",
    b'"x"',
    b"[" * 100_000,
    b'{"a":' * 5000,
    b"\xff\xfe",
    b"NaN",
    b"9" * 5000,
    b"\x00" * 100,
    b'{"sweeps": 5}',
)


def _json_files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() and path.suffix in (".json", ".jsonl"))


def _change(value: Any, places: list[int], new: Any) -> Any:
    """Return a value with one of its parts, found by a few numbers, replaced."""
    if not places or not isinstance(value, (dict, list)) or not value:
        return new
    if isinstance(value, dict):
        key = sorted(value)[places[0] % len(value)]
        return value | {key: _change(value[key], places[1:], new)}
    place = places[0] % len(value)
    return [*value[:place], _change(value[place], places[1:], new), *value[place + 1 :]]


@st.composite
def records(draw: st.DrawFn) -> Plan:
    """Draw a record of a store that was changed, and a command that reads the store.

    Most have a right checksum, as of somebody who has written them with orch: else nothing but that would be checked.
    """
    how = draw(st.sampled_from(("value", "value", "value", "missing", "raw", "raw value", "special", "name")))
    place = draw(st.integers(0, 1000))
    places = draw(st.lists(st.integers(0, 10), min_size=1, max_size=3))
    new = draw(plain)
    raw, special = draw(st.sampled_from(_RAW)), draw(st.sampled_from(("folder", "sparse", "dangling", "loop")))
    name = draw(st.sampled_from(STEERING)).replace("\x00", "").replace("/", "")

    def prepare(folder: Path) -> None:
        found = _json_files(folder / STORE)
        path = found[place % len(found)]
        if how == "special":
            path.unlink()
            make_special(path, special)
        elif how in ("raw", "raw value") or path.suffix == ".jsonl":
            raws = {"raw": raw, "raw value": under_checksum(raw)}
            path.write_bytes(raws[how] if how in raws else as_json(new).encode() + b"\n" + path.read_bytes())
        elif how == "name":
            path.rename(path.with_name(f"{name}.json"))
        else:
            value = parse_record(path.read_bytes())
            if how == "missing" and isinstance(value, dict):
                del value[sorted(value)[place % len(value)]]
            else:
                value = _change(value, places, new)
            try:
                path.write_bytes(to_record(value))
            except (ValueError, RecursionError):
                path.write_bytes(under_checksum(b"[" * 5000))

    words = draw(st.sampled_from(READING))
    about = f"record {place} {how} {places} {str(new)[:60]!r} {special if how == 'special' else ''}{raw[:9]!r}"
    return plan(
        *words, about=about, prepare=prepare, may_change=(STORE, "other", "out", "page.html", "made", "report.html")
    )


_NOTES: tuple[dict[str, str], ...] = (
    {}, {"orch.schema_version": "x"}, {"orch.schema_version": "99999"}, {"orch.schema_version": "-1"},
    {"orch.replaces": "["},
    {"orch.replaces": "5"}, {"orch.replaces": '["../../x", 5]'}, {"orch.replaces": '{"a": 1}'},
    {"orch.replaces": "[" * 9000},
    {"orch.replaces": '["/etc/passwd"]'}, {"orch.lines": "lines:" + "0" * 24}, {"orch.lines": "\x1b[8m"},
)  # fmt: skip


@st.composite
def parts(draw: st.DrawFn) -> Plan:
    """Draw a part of a table that was changed, and a command that reads the table."""
    table = draw(st.sampled_from(("trials", "attempts", "curves", "withdrawn")))
    how = draw(st.sampled_from(("column", "column", "column", "null", "drop", "bytes", "bomb", "extra", "twice")))
    column = draw(st.sampled_from(SCHEMAS[table].names))
    if draw(st.booleans()):  # columns that the commands read
        column = draw(st.sampled_from([name for name in SCHEMAS[table].names if name in _READ]))
    value = draw(plain)
    notes, level = draw(st.sampled_from(_NOTES)), draw(st.sampled_from(("0", "0", "1", "9", "x")))
    data = draw(st.binary(max_size=64))

    def prepare(folder: Path) -> None:
        root = folder / STORE / table
        existing = sorted(root.rglob("*.parquet"))
        rows = pq.read_table(existing[0]) if existing else _example_row(table)
        path = root / level / "0000000000000-hostile.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        if how == "bytes":
            original = existing[0].read_bytes() if existing else b"PAR1"
            middle = len(original) // 2
            path.write_bytes(original[:middle] + data + original[middle:])
            return
        if how == "bomb":
            rows = pa.table({name: _bomb(rows, name) for name in rows.column_names})
        elif how == "extra":
            rows = rows.append_column("\x1b[8mextra", pa.array(["\x1b]0;owned\x07"] * rows.num_rows))
        elif how == "drop" and column in rows.column_names:
            rows = rows.drop_columns([column])
        elif how == "twice":
            rows = rows.append_column(column, _array(value, rows.num_rows))
        else:
            rows = _with(rows, column, pa.nulls(rows.num_rows) if how == "null" else _array(value, rows.num_rows))
        try:
            pq.write_table(rows.replace_schema_metadata(notes or None), path, compression="zstd")
        except pa.ArrowNotImplementedError:  # such as a column of dictionaries without keys
            path.write_bytes(data)

    words = draw(st.sampled_from(READING))
    about = f"part of {table} {how} {column} {str(value)[:60]!r} {notes} {level}"
    return plan(
        *words, about=about, prepare=prepare, may_change=(STORE, "other", "out", "page.html", "made", "report.html")
    )


_READ = (
    "trial_id", "attempt_id", "driver_id", "event", "at", "outcome", "config", "finished_at", "seconds",
    "steps_trained", "model", "task",
    "learning_rate", "length_curve", "ood_accuracy", "step", "traceback", "error_signature", "error_message",
    "packages", "stop_reason",
    "validation_accuracy", "host", "device", "worker", "reason", "started_at", "model_revision", "wall_seconds",
    "kernel",
)  # fmt: skip


def _with(rows: pa.Table, column: str, array: pa.Array) -> pa.Table:
    place = rows.schema.get_field_index(column)
    return rows.append_column(column, array) if place < 0 else rows.set_column(place, column, array)


def _array(value: Any, length: int) -> pa.Array:
    try:
        return pa.array([value] * length)
    except (pa.ArrowException, OverflowError, ValueError, TypeError, RecursionError):
        return pa.array([b"\xff\xfe"] * length).cast(pa.string(), safe=False) if length else pa.nulls(0)


def _bomb(rows: pa.Table, name: str) -> pa.Array:
    """Return 24,000 times a megabyte of text as a few bytes, or as often the same value."""
    number = 24_000
    if pa.types.is_string(rows.schema.field(name).type):
        size = 1_000_000 if name in ("config", "traceback", "trial_id", "reason") else 1
        indices = pa.array([0], pa.int32()).take(pa.array([0] * number))
        return pa.DictionaryArray.from_arrays(indices, pa.array(["x" * size]))
    return rows[name].combine_chunks().take(pa.array([0] * number)) if rows.num_rows else pa.nulls(number)


def _example_row(table: str) -> pa.Table:
    return pa.Table.from_pylist([dict.fromkeys(SCHEMAS[table].names)], SCHEMAS[table])
