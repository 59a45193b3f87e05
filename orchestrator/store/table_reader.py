"""Reading a table: a reader finds its parts, reads those that are new, and keeps the rows in memory."""

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from orch.core.checksum import checksum
from orch.core.errors import StoreUnreachable
from orch.store.columns import KEYS, TIMES
from orch.store.damaged_files import StoreWarning, set_aside
from orch.store.deduplication import each_row_once
from orch.store.files import Files, reaching
from orch.store.footer_rows import find_lines, parse_lines
from orch.store.part import Contents, DamagedPart, Footer, Part, columns_checksum, decode, decode_footer
from orch.store.part_cache import PartCache
from orch.store.part_checks import check_columns, check_values
from orch.store.schema_union import conform, union

_SMALL_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 20
_MANY = 16
_PASSES = 100
T = TypeVar("T")


@dataclass
class Kept:
    """The rows of all parts read so far, without duplicates. It only grows, because parts do not change."""

    data: pa.Table | None = None
    parts: set[str] = field(default_factory=set)
    """Paths of all parts whose rows are here, including those that were merged into others since."""


class TableReader:
    """Reads one table of a store, and remembers what it has read."""

    def __init__(self, table: str, schema: pa.Schema, files: Files, cache: PartCache | None):
        self.table, self.schema, self.files = table, schema, files
        self._cache = cache
        self._kept: dict[tuple[str, ...] | None, Kept] = {}
        self._footers: dict[str, Footer] = {}
        self._skipped: set[str] = set()
        self._checked: set[str] = set()
        """Paths of large parts whose checksum was compared."""
        self._lock = threading.RLock()
        self._workers = min(8, os.cpu_count() or 1) if cache is None else 32

    def parts(self) -> list[Part]:
        listed = self.files.sizes(self.table).items()
        return [Part(path, size) for path, size in listed if path.endswith(".parquet") and path not in self._skipped]

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Read every row, including those that do not count. The same object is returned while there are no new rows.

        The columns are those asked for and those that identify a row, or all if `columns` is None.
        """
        with self._lock:
            wanted = self._wanted(columns)
            kept = self._kept.setdefault(wanted, Kept())
            for _ in self._passes():
                if self._read_new(kept, wanted):
                    break
            return kept.data

    def _wanted(self, columns: Sequence[str] | None) -> tuple[str, ...] | None:
        if columns is None or None in self._kept:
            return None
        time_column = TIMES[self.table]
        return tuple(dict.fromkeys([*KEYS[self.table], *([time_column] if time_column else []), *columns]))

    def _passes(self) -> Iterator[int]:
        """Yield attempts at reading, which may fail because another process merges parts after we have listed them."""
        for attempt in range(_PASSES):
            yield attempt
            time.sleep(min(0.01 * attempt, 0.5))
        raise StoreUnreachable(
            f"{self.table} of the store at {self.files.location} is listed but cannot be read: try again"
        )

    def _read_new(self, kept: Kept, wanted: tuple[str, ...] | None) -> bool:
        """Read new parts, merged ones first, because they replace others. Return whether all could be read."""
        listed = self.parts()
        levels: dict[int, list[Part]] = {}
        for part in listed:
            levels.setdefault(part.level, []).append(part)
        # If an error is raised, neither the parts nor their rows are kept.
        known = set(kept.parts)
        complete, new, only_merged = True, [], 0 not in levels
        for level in sorted(levels, reverse=True):
            missing = [part for part in levels[level] if not self._is_known(part, known)]
            for part, contents in self.load(missing, wanted):
                if contents is None:
                    complete = False
                else:
                    new.append(contents.data)
                    known |= {part.path, *contents.footer.replaces}
        if new or kept.data is None:
            rows = union([*([] if kept.data is None else [kept.data]), *new])
            data = conform(self.table, self.schema, rows, wanted)
            # A merged part has no duplicates.
            kept.data = data if only_merged and len(new) == 1 and kept.data is None else each_row_once(self.table, data)
        kept.parts = known
        if self._cache is not None and new:
            self._cache.prune(self.table, {part.path for part in listed})
        return complete

    def _is_known(self, part: Part, known: set[str]) -> bool:
        """Return whether the rows of a part are known, as are those of a merged part whose inputs were all read."""
        if part.path in known:
            return True
        if part.level and known:
            with contextlib.suppress(FileNotFoundError, DamagedPart):
                replaces = self.footer(part).replaces
                if replaces and replaces <= known:
                    known.add(part.path)
                    return True
        return False

    def footer(self, part: Part) -> Footer:
        if part.path not in self._footers:
            with reaching(self.files.location, "read"):
                source, checked = self._compared(part)
                self._footers[part.path] = decode_footer(source, self.files.location, checked)
        return self._footers[part.path]

    def load(self, parts: Sequence[Part], columns: Sequence[str] | None) -> list[tuple[Part, Contents | None]]:
        """Read the contents of each part; None if it has disappeared. Damaged parts are moved away and left out."""
        # A few parts are read as Parquet; for many, the lines in their footers are far faster.
        known_columns = columns_checksum(self.schema) if len(parts) >= _MANY else None

        def load_one(part: Part) -> Contents | bytes | DamagedPart | None:
            try:
                return self._load(part, columns, known_columns)
            except FileNotFoundError:
                return None
            except DamagedPart as damage:
                return damage

        found = self.in_parallel(load_one, parts)
        try:
            loaded = list(self._parsed(found, columns))
        except (ValueError, pa.ArrowException, DamagedPart):
            # The lines of some part are not rows of this table: read the rows themselves.
            known_columns = None
            loaded = list(self._parsed(self.in_parallel(load_one, parts), columns))
        good: list[tuple[Part, Contents | None]] = []
        damaged = []
        for part, contents in zip(parts, loaded, strict=True):
            if isinstance(contents, DamagedPart):
                damaged.append((part, contents))
            else:
                good.append((part, contents))
                if contents is not None:
                    self._footers[part.path] = contents.footer
        self._set_aside(damaged)
        return good

    def _load(self, part: Part, columns: Sequence[str] | None, known_columns: int | None) -> Contents | bytes:
        """Return the rows of a part, or its lines if it has the columns with the checksum `known_columns`."""
        try:
            return self._load_once(part, columns, known_columns)
        except DamagedPart:
            # Perhaps only the cached copy is damaged, or what was received.
            if self._cache is not None:
                self._cache.drop(part)
            return self._load_once(part, columns, known_columns)

    def _load_once(self, part: Part, columns: Sequence[str] | None, known_columns: int | None) -> Contents | bytes:
        with reaching(self.files.location, "read"):
            source, checked = self._compared(part)
            if known_columns is not None and isinstance(source, bytes):
                lines = find_lines(source, known_columns, checked)
                if lines is not None:
                    return lines
            contents = decode(source, columns, self.files.location, checked)
        self._check(contents.data, columns)
        return contents

    def _compared(self, part: Part) -> tuple[Any, bool]:
        """Return the bytes of a part or the path of its file, and whether its checksum was compared.

        Raise `DamagedPart` if the checksum is wrong. Large parts are compared once: later only their path is returned.
        """
        source = self._source(part)
        expected = part.checksum or self.files.listed.get(part.path)
        if expected is None or part.path in self._checked:
            return source, expected is not None
        if checksum([source] if isinstance(source, bytes) else _blocks(source)) != expected:
            raise DamagedPart("its checksum is wrong")
        if not isinstance(source, bytes):
            self._checked.add(part.path)
        return source, True

    def _check(self, data: pa.Table, columns: Sequence[str] | None) -> None:
        """Raise `DamagedPart` for rows that are not of this table."""
        try:
            check_columns(self.table, self.schema, data, columns)
        except ValueError as error:
            raise DamagedPart(str(error)) from None

    def _parsed(
        self, loaded: Sequence[Contents | bytes | DamagedPart | None], columns: Sequence[str] | None
    ) -> Iterator[Contents | DamagedPart | None]:
        """Parse all lines at once, and replace those of each part with its rows."""
        lines = [each for each in loaded if isinstance(each, bytes)]
        known = [field.remove_metadata() for field in self.schema]
        schema = pa.schema([field for field in known if columns is None or field.name in columns])
        rows, place = parse_lines(lines, schema), 0
        if lines:
            check_values(rows)
            self._check(rows, columns)
        if rows.num_rows != sum(each.count(b"\n") + 1 for each in lines):
            raise DamagedPart("its lines are not its rows")
        for each in loaded:
            if isinstance(each, bytes):
                num_rows = each.count(b"\n") + 1
                yield Contents(rows.slice(place, num_rows), Footer(num_rows, frozenset()))
                place += num_rows
            else:
                yield each

    def _source(self, part: Part) -> Any:
        path = self.files.local_path(part.path) if self._cache is None else self._cache.find(part)
        if path is None:
            data = self.files.get(part.path)
            if len(data) != part.size:
                raise OSError(f"{part.path} was not received completely")
            assert self._cache is not None
            self._cache.keep(part, data)
            return data
        if part.size > _SMALL_BYTES:
            return path
        with open(path, "rb") as file:
            return file.read()

    def _set_aside(self, damaged: Iterable[tuple[Part, DamagedPart]]) -> None:
        messages = []
        for part, damage in damaged:
            told = set_aside(self.files, part.path, f"{self.table}/{part.name}", damage)
            if told is not None:
                message, moved = told
                messages.append(message)
                if not moved:
                    self._skipped.add(part.path)
        for message in messages:
            warnings.warn(message, StoreWarning, stacklevel=4)

    def in_parallel(self, function: Callable[[Part], T], parts: Sequence[Part]) -> list[T]:
        num_workers = min(self._workers, len(parts))
        if num_workers <= 1:
            return [function(part) for part in parts]
        size = -(-len(parts) // (8 * num_workers))  # handing over single parts costs as much as reading them
        shares = [parts[start : start + size] for start in range(0, len(parts), size)]
        with ThreadPoolExecutor(num_workers) as pool:
            done = pool.map(lambda share: [function(part) for part in share], shares)
            return [each for share in done for each in share]


def _blocks(path: str) -> Iterator[bytes]:
    with open(path, "rb", buffering=0) as file:
        while block := file.read(_BLOCK_BYTES):
            yield block
