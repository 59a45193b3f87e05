"""One table's parts: finds them, reads those it has not read yet, and remembers what it read."""

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

from orch.core.errors import StoreUnreachable
from orch.store.columns import KEYS, TIMES
from orch.store.deduplication import unique
from orch.store.files import Files, reaching
from orch.store.footer_rows import find_lines, parse_lines
from orch.store.part import Contents, DamagedPart, Footer, Part, columns_checksum, decode, decode_footer
from orch.store.part_cache import PartCache
from orch.store.schema_union import conform, union

_SMALL_BYTES = 1 << 20
_MANY = 16
_PASSES = 100
T = TypeVar("T")


class StoreWarning(UserWarning):
    """Something is wrong with a store that work can go on without."""


@dataclass
class Kept:
    """The rows of the parts read so far, one per fact. It only ever grows: parts do not change, and no row is lost."""

    data: pa.Table | None = None
    parts: set[str] = field(default_factory=set)
    """Paths of all parts whose rows are here, present or long since merged into others."""


class Shelf:
    def __init__(self, table: str, schema: pa.Schema, files: Files, cache: PartCache | None):
        self.table, self.schema, self.files = table, schema, files
        self._cache = cache
        self._kept: dict[tuple[str, ...] | None, Kept] = {}
        self._footers: dict[str, Footer] = {}
        self._shunned: set[str] = set()
        self._lock = threading.RLock()
        self._workers = min(8, os.cpu_count() or 1) if cache is None else 32

    def parts(self) -> list[Part]:
        listed = self.files.sizes(self.table)
        return [Part(path, size) for path, size in listed.items() if _is_part(path) and path not in self._shunned]

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Every row there is, those that do not count included; the same object as before while there are no new ones.

        The columns are those asked for and those that identify a row; all if none are named.
        """
        with self._lock:
            wanted = self._wanted(columns)
            kept = self._kept.setdefault(wanted, Kept())
            for _ in self.passes():
                if self._read_new(kept, wanted):
                    break
            return kept.data

    def _wanted(self, columns: Sequence[str] | None) -> tuple[str, ...] | None:
        if columns is None or None in self._kept:
            return None
        time_column = TIMES[self.table]
        return tuple(dict.fromkeys([*KEYS[self.table], *([time_column] if time_column else []), *columns]))

    def passes(self) -> Iterator[int]:
        """Tries at what another process may thwart by merging parts between our listing and our reading them."""
        for attempt in range(_PASSES):
            yield attempt
            time.sleep(min(0.01 * attempt, 0.5))
        raise StoreUnreachable(
            f"{self.table} of the store at {self.files.location} is listed but cannot be read: try again"
        )

    def _read_new(self, kept: Kept, wanted: tuple[str, ...] | None) -> bool:
        """Whether everything that was listed could be read. Merged parts come first: they make others superfluous."""
        listed = self.parts()
        levels: dict[int, list[Part]] = {}
        for part in listed:
            levels.setdefault(part.level, []).append(part)
        # What is read is remembered together with its rows or, if an error comes between, not at all.
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
            # What a compaction wrote has every fact once.
            kept.data = data if only_merged and len(new) == 1 and kept.data is None else unique(self.table, data)
        kept.parts = known
        if self._cache is not None and new:
            self._cache.prune(self.table, {part.path for part in listed})
        return complete

    def _is_known(self, part: Part, known: set[str]) -> bool:
        """A merged part holds nothing new for who has read all that was merged into it."""
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
                self._footers[part.path] = decode_footer(self._source(part), self.files.location)
        return self._footers[part.path]

    def load(self, parts: Sequence[Part], columns: Sequence[str] | None) -> list[tuple[Part, Contents | None]]:
        """What is in each part; None if it has vanished. Damaged parts are set aside and left out."""
        # A few parts are read as what they are; of many, the lines in their footers are far faster.
        known_columns = columns_checksum(self.schema) if len(parts) >= _MANY else None

        def load_one(part: Part) -> Contents | bytes | DamagedPart | None:
            try:
                return self._load(part, columns, known_columns)
            except FileNotFoundError:
                return None
            except DamagedPart as damage:
                return damage

        loaded = self._parsed(self.in_parallel(load_one, parts), columns)
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
        """A part's rows, or its lines if those of parts with such columns will do."""
        with reaching(self.files.location, "read"):
            source = self._source(part)
            if known_columns is not None and isinstance(source, bytes):
                lines = find_lines(source, known_columns)
                if lines is not None:
                    return lines
            try:
                return decode(source, columns, self.files.location)
            except DamagedPart:
                if self._cache is None or self._cache.find(part) is None:
                    raise
                # Perhaps only our copy is damaged.
                self._cache.drop(part)
                return decode(self._source(part), columns, self.files.location)

    def _parsed(
        self, loaded: Sequence[Contents | bytes | DamagedPart | None], columns: Sequence[str] | None
    ) -> Iterator[Contents | DamagedPart | None]:
        """Lines as what they mean: parsed all at once, then each part's share of the rows."""
        lines = [each for each in loaded if isinstance(each, bytes)]
        known = [field.remove_metadata() for field in self.schema]
        schema = pa.schema([field for field in known if columns is None or field.name in columns])
        rows, place = parse_lines(lines, schema), 0
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
                raise OSError(f"{part.path} was cut short on its way")
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
            aside = f"damaged/{self.table}/{part.name}"
            try:
                self.files.move(part.path, aside)
                where = f"moved to {aside}"
            except FileNotFoundError:
                continue
            except Exception:
                # A store that we may only read: leave the part where it is.
                self._shunned.add(part.path)
                where = "left where it is"
            messages.append(f"{part.path} of the store at {self.files.location} is damaged and was {where} ({damage})")
        for message in messages:
            warnings.warn(message, StoreWarning, stacklevel=4)

    def in_parallel(self, function: Callable[[Part], T], parts: Sequence[Part]) -> list[T]:
        if len(parts) <= 1:
            return [function(part) for part in parts]
        num_workers = min(self._workers, len(parts))
        size = -(-len(parts) // (8 * num_workers))  # handing parts over one by one costs as much as reading them
        shares = [parts[start : start + size] for start in range(0, len(parts), size)]
        with ThreadPoolExecutor(num_workers) as pool:
            done = pool.map(lambda share: [function(part) for part in share], shares)
            return [each for share in done for each in share]


def _is_part(path: str) -> bool:
    return path.endswith(".parquet")
