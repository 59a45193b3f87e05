"""Merging small parts into large ones, so that reading thousands of trials takes a few requests.

Other programs that read the Parquet files should see each finished trial once. So a merge drops duplicates, and moves
later results of a trial from `trials` to the table `superseded`, from where one counts again if the first is withdrawn.
A row is dropped only where the one that stays is written into the same part: then no two compactions can each drop the
row that the other keeps. Parts of any size that share such rows are therefore merged into one.

A process may die at any moment, and two compactions may run at once: a merged part is on disk before any part that it
replaces is deleted, readers ignore parts that another one replaces, and duplicate rows count once. Parts
that a compaction did not delete before it died are deleted by the next one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from orch.core.counted import counted
from orch.store.columns import SUPERSEDED
from orch.store.crash_points import crash_point
from orch.store.deduplication import each_once, unique
from orch.store.part import LEVELS, DamagedPart, Part, encode, new_path
from orch.store.schema_union import conform, union
from orch.store.table_reader import TableReader

LARGE_BYTES = 128 << 20
LARGE_ROWS = 1_000_000
"""Parts of this size are not merged again."""


@dataclass(frozen=True, slots=True)
class CompactionReport:
    merged: int = 0
    """Parts that were merged into others."""
    written: int = 0
    """Parts that the merge wrote."""
    leftovers: int = 0
    """Deleted parts that an earlier compaction had merged but not deleted."""

    def __add__(self, other: "CompactionReport") -> "CompactionReport":
        return CompactionReport(
            self.merged + other.merged, self.written + other.written, self.leftovers + other.leftovers
        )

    @property
    def description(self) -> str:
        """The report in one sentence."""
        if not self.merged and not self.leftovers:
            return "nothing to merge: the store has few small files"
        merged = f"merged {counted(self.merged, 'file')} into {counted(self.written, 'file')}" if self.merged else ""
        deleted = f"deleted {counted(self.leftovers, 'file')} that an earlier merge had left" if self.leftovers else ""
        return "; ".join(filter(None, (merged, deleted)))


def compact(
    reader: TableReader, min_parts: int, withdrawn: TableReader | None = None, rewrite: bool = False
) -> CompactionReport:
    """Merge the parts of a table level by level, so that merged parts can be merged again at once.

    They are listed once, because a listing of a bucket with many parts takes many requests. `withdrawn` is given for
    the table `trials`. With `rewrite`, parts of any size are written anew that have results of the same trials, or no
    checksum.
    """
    present = {part.path: part for part in reader.parts()}
    report = CompactionReport(leftovers=_delete_leftovers(reader, present))
    for level in range(LEVELS - 1):
        parts = [part for part in present.values() if part.level == level and not _is_large(part, reader)]
        if len(parts) >= max(min_parts, 2):
            for group, data in _groups(reader, parts):
                written = _write(reader, group, data, level + 1, withdrawn)
                present[written.path] = written
                report += CompactionReport(merged=len(group), written=1)
    for parts in _parts_to_rewrite(reader, withdrawn) if rewrite else ():
        read = [(part, contents.data) for part, contents in reader.load(parts, None) if contents is not None]
        level = 1 + max((part.level for part, _ in read), default=LEVELS)
        if level < LEVELS and (data := union([data for _, data in read])) is not None:
            _write(reader, [part for part, _ in read], data, level, withdrawn)
            report += CompactionReport(merged=len(read), written=1)
    return report


def _delete_leftovers(reader: TableReader, present: dict[str, Part]) -> int:
    """Delete the parts whose rows are all in another part, and take them out of `present`."""
    leftovers: dict[str, Part] = {}
    for part in present.values():
        if part.level:
            try:
                replaced = reader.footer(part).replaces & present.keys()
            except FileNotFoundError:
                continue
            except DamagedPart:
                reader.load([part], None)  # it is named and set aside
                continue
            # A part is deleted only if the one that replaces it can be read to its end.
            if replaced and any(contents for _, contents in reader.load([part], None)):
                leftovers |= {path: present[path] for path in replaced}
    _delete(reader, list(leftovers.values()))
    for path in leftovers:
        del present[path]
    return len(leftovers)


def _is_large(part: Part, reader: TableReader) -> bool:
    if part.size >= LARGE_BYTES:
        return True
    try:
        # Reading ten thousand footers to find that single rows are small would cost more than merging them.
        return part.level > 0 and reader.footer(part).num_rows >= LARGE_ROWS
    except (FileNotFoundError, DamagedPart):
        return False


def _write(
    reader: TableReader, parts: Sequence[Part], rows: pa.Table, level: int, withdrawn: TableReader | None
) -> Part:
    """Write the rows of parts as one part, without duplicates, delete these parts, and return the new one."""
    merged = unique(reader.table, conform(reader.table, reader.schema, rows, None))
    if withdrawn is not None:
        merged, later = each_once(merged, withdrawn.read())
        if later.num_rows:
            data = encode(SUPERSEDED, reader.schema, later)
            reader.files.put(new_path(SUPERSEDED, 0, data), data)
            crash_point("superseded-written")
    data = encode(reader.table, reader.schema, merged, [part.path for part in parts])
    path = new_path(reader.table, level, data)
    reader.files.put(path, data)
    crash_point("compacted-written")
    _delete(reader, parts)
    return Part(path, len(data))


def _parts_to_rewrite(reader: TableReader, withdrawn: TableReader | None) -> list[list[Part]]:
    """Return parts without a checksum, each for itself, and parts that have results of the same trials, together."""
    parts = {part.path: part for part in reader.parts()}
    together = {path: {path} for path in parts}
    wanted = {path for path, part in parts.items() if part.checksum is None}
    if withdrawn is not None:
        gone = {*_attempts_of_trials(withdrawn.read())}
        first: dict[tuple[str, ...], str] = {}
        for part, contents in reader.load(list(parts.values()), ("trial_id", "attempt_id")):
            for result in [] if contents is None else _attempts_of_trials(contents.data):
                key = result if result in gone else result[:1]  # a withdrawn result does not stand in another's way
                if key not in first:
                    first[key] = part.path
                    continue
                wanted.add(part.path)
                if together[first[key]] is not together[part.path]:
                    united = together[first[key]] | together[part.path]
                    together |= dict.fromkeys(united, united)
    groups = {id(together[path]): together[path] for path in sorted(wanted)}
    return [[parts[path] for path in sorted(group)] for group in groups.values()]


def _attempts_of_trials(results: pa.Table) -> list[tuple[str, str]]:
    return list(zip(results["trial_id"].to_pylist(), results["attempt_id"].to_pylist(), strict=True))


def _groups(reader: TableReader, parts: list[Part]) -> Iterator[tuple[list[Part], pa.Table]]:
    """Yield groups of parts that together make a large one, with all their rows; the last group is the remainder.

    Parts that are damaged, or that another compaction has deleted in the meantime, are in no group.
    """
    group: list[Part] = []
    tables: list[pa.Table] = []
    num_bytes = num_rows = 0
    for start in range(0, len(parts), 1024):
        for part, contents in reader.load(parts[start : start + 1024], None):
            if contents is None:
                continue
            group.append(part)
            tables.append(contents.data)
            num_bytes, num_rows = num_bytes + part.size, num_rows + contents.data.num_rows
            if num_bytes >= LARGE_BYTES or num_rows >= LARGE_ROWS:
                yield from _worth_merging(group, tables)
                group, tables, num_bytes, num_rows = [], [], 0, 0
    yield from _worth_merging(group, tables)


def _worth_merging(group: list[Part], tables: list[pa.Table]) -> Iterator[tuple[list[Part], pa.Table]]:
    if len(group) > 1:
        data = union(tables)
        assert data is not None
        yield group, data


def _delete(reader: TableReader, parts: Sequence[Part]) -> None:
    def delete(part: Part) -> None:
        reader.files.delete(part.path)

    reader.in_parallel(delete, parts)
