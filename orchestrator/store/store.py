"""The store: all results, curves and attempts, as Parquet parts below one root. Rows are never erased."""

import datetime
import os
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from orch.core.errors import DamagedFile, StoreUnreachable, look_up_name
from orch.core.reading import RECORD_BYTES, Refused, shown
from orch.core.safetensors_header import is_checked
from orch.core.shape import checked
from orch.store.attempts import checked_row
from orch.store.bundled import BUNDLED, no_results
from orch.store.columns import KEYS, SUPERSEDED, make_schemas
from orch.store.compaction import CompactionReport, compact
from orch.store.crash_points import crash_point
from orch.store.damaged_files import StoreWarning, set_aside
from orch.store.deduplication import standing, standing_curves
from orch.store.files import Data, open_files
from orch.store.integrity import ExaminedFile, examine
from orch.store.part import encode, new_path, to_table
from orch.store.part_cache import PartCache
from orch.store.read_only import ReadOnlyFiles
from orch.store.records import parse_record, to_record
from orch.store.schema_union import conform, union
from orch.store.table_reader import TableReader
from orch.sweeps.definitions import Definitions, PartType

DEFAULT_STORE = "runs"
T = TypeVar("T")
_LONGEST = 240
"""Characters of a file's name; file systems allow 255 bytes."""


class Store:
    """A store of results. Any number of processes on any machines may read, write and compact it at once.

    A result is never changed; of several results of one trial, the first counts. Methods may be called from any thread.
    """

    def __init__(
        self,
        location: str | os.PathLike[str] = DEFAULT_STORE,
        user_types: tuple[PartType, ...] = (),
        read_only: bool = False,
    ):
        """`user_types` are user-defined tasks and models, whose settings are added as columns of `trials`.

        A store that is opened `read_only` is never changed: damaged parts are reported and stay where they are.
        """
        given = os.fspath(location)
        if not given or "\0" in given:
            raise StoreUnreachable(f"{given!r} names no store: give a folder, or a bucket such as s3://bucket/runs")
        named = "://" in given or given == BUNDLED
        self.uri = given if named else os.path.abspath(os.path.expanduser(given))
        """The location to send to workers. It may contain credentials: show `location` instead."""
        self._files = ReadOnlyFiles(open_files(given)) if read_only else open_files(given)
        cache = PartCache(self.location) if self._files.local_path("") is None else None
        schemas = dict(make_schemas(user_types))
        schemas[SUPERSEDED] = schemas["trials"]
        self._readers = {table: TableReader(table, schema, self._files, cache) for table, schema in schemas.items()}
        self._with_settings = {user_types: self}
        self._answers: dict[tuple[str, tuple[str, ...] | None], tuple[tuple[pa.Table, ...], pa.Table]] = {}

    @classmethod
    def open(cls, location: str | os.PathLike[str] = DEFAULT_STORE) -> "Store":
        """Open the store in a folder, at a `pyarrow.fs` URI such as `s3://bucket/folder`, or the one named `bundled`.

        Nothing is created until something is written.
        """
        return cls(location)

    def with_settings_of(self, definitions: Definitions) -> "Store":
        """Return this store with a column in `trials` for every setting of a user's tasks and models."""
        user_types = definitions.user_types
        if user_types not in self._with_settings:
            self._with_settings[user_types] = Store(self.uri, user_types)
        return self._with_settings[user_types]

    @property
    def location(self) -> str:
        """The location without credentials, for messages."""
        return self._files.location

    def __repr__(self) -> str:
        return f"Store({self.location!r})"

    def __reduce__(self) -> Any:
        return Store.open, (self.uri,)

    def exists(self) -> bool:
        return self._files.exists()

    def check_exists(self) -> "Store":
        """Return this store, or raise an error that names the remedy if nothing was ever written to it."""
        if not self.exists():
            raise no_results(self.location)
        return self

    def verify(self) -> None:
        """Write, read back and delete a small file, and raise an error if that fails."""
        path, data = f"logs/probe-{secrets.token_hex(8)}", secrets.token_bytes(16)
        self._files.put(path, data)
        try:
            read = self._files.get(path)
        except FileNotFoundError:
            read = None
        self._files.delete(path)
        if read != data:
            raise StoreUnreachable(f"the store at {self.location} does not return what was written to it: use another")

    # Rows

    def write(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows as one part, so that all of them or none are written if this process dies."""
        schema = self._reader(table).schema
        if rows:
            rows = [checked_row(row) for row in rows] if table == "attempts" else rows
            self.append(table, to_table(table, schema, rows))

    def append(self, table: str, data: pa.Table) -> None:
        """Append rows of another store as one part; they may have settings of a user whose code is missing here."""
        schema = self._reader(table).schema
        if data.num_rows:
            part = encode(table, schema, data)
            self._files.put(new_path(table, 0, part), part)

    def write_trials(self, rows: Sequence[Mapping[str, Any]], curves: Sequence[Mapping[str, Any]]) -> None:
        """Write finished trials. Their curves are written first, so that every trial in the store has its curves."""
        self.write("curves", curves)
        crash_point("curves-written")
        self.write("trials", rows)
        crash_point("trial-written")

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the rows that count, each once: of each trial, the first result that was not withdrawn."""
        sources = self._sources(table, columns)
        key = (table, None if columns is None else tuple(columns))
        before, answer = self._answers.get(key, ((), None))
        if answer is None or [*map(id, sources)] != [*map(id, before)]:
            answer = _answer(table, *sources)
            answer = answer if columns is None else conform(table, self._readers[table].schema, answer, columns)
            self._answers[key] = (sources, answer)
        return answer

    def _sources(self, table: str, columns: Sequence[str] | None) -> tuple[pa.Table, ...]:
        """Read all rows of the tables that an answer depends on.

        Curves are read after trials and written before them, so that every trial that was read has its curves.
        """
        if table not in ("trials", "curves"):
            return (self._reader(table).read(columns),)
        wanted = columns if table == "trials" else ("trial_id",)
        trials = self._readers["trials"].read(wanted)
        withdrawn = self._readers["withdrawn"].read()
        # Rows are written there before they leave `trials`, and can count only once another result is withdrawn.
        results = (trials, withdrawn, *((self._readers[SUPERSEDED].read(wanted),) if withdrawn.num_rows else ()))
        return results if table == "trials" else (self._readers["curves"].read(columns), *results)

    def done(self) -> set[str]:
        """Return the ids of the trials that have a result."""
        return set(self.read("trials", ("trial_id",))["trial_id"].to_pylist())

    def discard(self, trial_ids: Iterable[str], reason: str) -> int:
        """Withdraw every result of these trials, so that they count as not run. Return the number of trials withdrawn.

        Nothing is erased. A result that another attempt writes later counts again.
        """
        wanted = set(trial_ids)
        trials, withdrawn, *_ = self._sources("trials", ("trial_id",))
        results = union([trials, self._readers[SUPERSEDED].read(("trial_id",))])
        assert results is not None
        gone = set(zip(withdrawn["trial_id"].to_pylist(), withdrawn["attempt_id"].to_pylist(), strict=True))
        pairs = zip(results["trial_id"].to_pylist(), results["attempt_id"].to_pylist(), strict=True)
        found = [pair for pair in dict.fromkeys(pairs) if pair[0] in wanted and pair not in gone]
        now = datetime.datetime.now(datetime.UTC)
        rows = [{"trial_id": trial, "attempt_id": attempt, "reason": reason, "at": now} for trial, attempt in found]
        self.write("withdrawn", rows)
        return len({trial for trial, _ in found})

    def compact(self, table: str | None = None, min_parts: int = 16, rewrite: bool = False) -> CompactionReport:
        """Merge small parts into large ones wherever at least `min_parts` are of one level.

        With `rewrite`, parts of any size are written anew if other parts have results of the same trials, so that plain
        readers of Parquet see each finished trial once, or if they are from before there were checksums.
        Files that writers left half written when they died are removed, and checkpoints of finished trials.
        """
        self._files.sweep()
        self._delete_needless_checkpoints()
        readers = self._readers.values() if table is None else [self._reader(table)]
        withdrawn = {"trials": self._readers["withdrawn"]}
        reports = (compact(reader, min_parts, withdrawn.get(reader.table), rewrite) for reader in readers)
        return sum(reports, CompactionReport())

    def _delete_needless_checkpoints(self) -> None:
        """Delete the checkpoints of finished trials. A worker that dies after it wrote a result cannot do that."""
        if left := {path.rpartition("/")[2].partition(".")[0]: path for path in self.list_files("checkpoints")}:
            for trial_id in left.keys() & self.done():
                self.delete(left[trial_id])

    def _reader(self, table: str) -> TableReader:
        return look_up_name("table", table, self._readers)

    # Files

    def put_checkpoint(self, trial_id: str, data: Data) -> None:
        """Write the checkpoint of a trial. It replaces the old one atomically."""
        self._files.put(_checked(f"checkpoints/{trial_id}.safetensors"), data)

    def get_checkpoint(self, trial_id: str) -> bytes | None:
        return self._get_good(f"checkpoints/{trial_id}.safetensors", _good_safetensors)

    def delete_checkpoint(self, trial_id: str) -> None:
        self.delete(f"checkpoints/{trial_id}.safetensors")

    def put_weights(self, trial_id: str, data: bytes) -> None:
        self.put_bytes(f"weights/{trial_id}.safetensors", data)

    def get_weights(self, trial_id: str) -> bytes | None:
        return self._get_good(f"weights/{trial_id}.safetensors", _good_safetensors)

    def put_json(self, path: str, value: Any) -> None:
        self.put_bytes(path, to_record(value))

    def get_json(self, path: str, kind: Any = Any) -> Any | None:
        """Read a JSON file that has the shape `kind`, one of `core.records`; None if there is none.

        A damaged file is set aside. One that is too large or of another shape is left out, with a warning that names
        it.
        """
        try:
            value = self._get_good(path, parse_record, RECORD_BYTES)
            return None if value is None else checked(value, kind)
        except Refused as reason:
            about = f"{path} of the store at {self.location} is left out ({reason}): delete it, or restore it"
            warnings.warn(about, StoreWarning, stacklevel=2)
            return None

    def list_json(self, folder: str, kind: Any = Any) -> dict[str, Any]:
        """Read the JSON files of a folder that have the shape `kind`, by name without `.json`: see `get_json`."""
        found = {}
        for path in self.list_files(folder):
            if path.endswith(".json") and (value := self.get_json(path, kind)) is not None:
                found[path.removeprefix(f"{folder}/").removesuffix(".json")] = value
        return found

    def put_bytes(self, path: str, data: bytes) -> None:
        self._files.put(_checked(path), data)

    def get_bytes(self, path: str, most: int | None = None) -> bytes | None:
        """Return the contents of a file; None if there is none. One of more than `most` bytes raises `Refused`."""
        try:
            return self._files.get(_checked(path), most)
        except FileNotFoundError:
            return None

    def _get_good(self, path: str, parse: Callable[[bytes], T], most: int | None = None) -> T | None:
        """Read a file of at most so many bytes. It is set aside if `parse` raises `ValueError`: then it is damaged."""
        damage = None
        for _ in range(2):  # at first it may have been received incompletely, or replaced meanwhile
            data = self.get_bytes(path, most)
            if data is None:
                return None
            try:
                return parse(data)
            except ValueError as error:
                damage = error
        assert damage is not None
        told = set_aside(self._files, path, path, damage)
        if told is not None:
            warnings.warn(told[0], StoreWarning, stacklevel=3)
        return None

    def examine(self) -> Iterator[ExaminedFile]:
        """Read every file, and yield its condition. Nothing is changed."""
        return examine(self._files)

    def list_files(self, folder: str) -> list[str]:
        """Return the paths of the files in a folder, such as `logs`, at any depth."""
        return sorted(self._files.sizes(_checked(folder)))

    def delete(self, path: str) -> None:
        self._files.delete(_checked(path))


def _answer(table: str, *sources: pa.Table) -> pa.Table:
    if table == "trials":
        trials, withdrawn, *superseded = sources
        results = union([trials, *superseded]) if superseded else trials
        return standing(results, withdrawn)
    if table == "curves":
        curves, *results = sources
        return standing_curves(curves, _answer("trials", *results), results[1])
    return sources[0]


def _good_safetensors(data: bytes) -> bytes:
    is_checked([data])
    return data


def _checked(path: str) -> str:
    folder, *names = path.split("/")
    assert folder not in KEYS, f"{path}: rows are written with write"
    # Parts of the path may be ids that stand in a store's records, which anybody can have written.
    if any(name.startswith(".") or not name or "\0" in name or len(name) > _LONGEST for name in (folder, *names)):
        raise DamagedFile(f"{shown(path)} is not a path in a store: check what its records and results are called")
    return path
