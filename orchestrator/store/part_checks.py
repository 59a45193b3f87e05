"""Limits of a part: its size once unpacked, its columns and its values. A part beyond them counts as damaged.

A Parquet file of 11 kB can stand for 24 GB: a text in a dictionary, and a number that names it a million times. The
metadata tells how much there is to unpack, except for such texts, which are then counted before they are unpacked.
"""

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from orch.store.columns import KEYS
from orch.store.schema_union import wider

UNPACKED_BYTES = 256 << 20
"""Every part may unpack to this much."""
UNPACKED_TIMES = 1000
"""A larger part may unpack to so many times its own size; parts of this project unpack to a tenth of that or less."""
_WIDTH = 8
"""Bytes of a number in memory."""
_EARLIEST, _LATEST = -62_100_000_000_000_000, 253_300_000_000_000_000
"""Microseconds from the year 2 to the year 9996: Python cannot express most times beyond that."""
_TEXTS = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")


def check_unpacked(source: Any, file: pq.ParquetFile, columns: Sequence[str] | None) -> None:
    """Raise `ValueError` if the columns of a part would take too much memory. Nothing is unpacked to find out."""
    size = source.size() if isinstance(source, pa.BufferReader) else os.path.getsize(source)
    most = max(UNPACKED_BYTES, UNPACKED_TIMES * size)
    certain, texts = 0, dict[str, int]()
    metadata = file.metadata
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if columns is None or column.path_in_schema.split(".")[0] in columns:
                values = max(column.num_values, group.num_rows) * _WIDTH
                certain += max(values, column.total_uncompressed_size)
                if column.physical_type in _TEXTS and column.has_dictionary_page:
                    repeated = texts.get(column.path_in_schema, 0) + values * column.total_uncompressed_size
                    texts[column.path_in_schema] = repeated
    if certain <= most and sum(texts.values()) > most:
        texts |= _dictionary_bytes(source, metadata, list(texts))
        while certain <= most < sum(texts.values()):  # the largest are counted, which takes as long as unpacking them
            largest = max(texts, key=lambda name: texts[name])
            del texts[largest]
            certain += _repeated_bytes(source, metadata, [largest], most)
    if certain > most:
        raise ValueError(f"its {size:,} bytes unpack to more than {most:,}")


def _dictionary_bytes(source: Any, metadata: pq.FileMetaData, columns: list[str]) -> dict[str, int]:
    """Return the most bytes of the texts that dictionaries stand for in each column, for those where that is known.

    To read one value, a whole dictionary is unpacked, if there is one for this value: then it has several texts. All
    values of the group are taken to be the longest of them.
    """
    found: dict[str, int] = {}
    unknown: set[str] = set()
    with _reopened(source, metadata, columns) as file:
        for group in range(metadata.num_row_groups):
            batch = next(file.iter_batches(batch_size=1, row_groups=[group], columns=columns), None)
            for name in columns:
                array = None if batch is None or name not in batch.schema.names else batch[name]
                if array is None or not pa.types.is_dictionary(array.type) or len(array.dictionary) < 2:
                    unknown.add(name)
                    continue
                longest = pc.max(pc.binary_length(array.dictionary)).as_py()
                found[name] = found.get(name, 0) + longest * metadata.row_group(group).num_rows
    return {name: size for name, size in found.items() if name not in unknown}


def _reopened(source: Any, metadata: pq.FileMetaData, columns: list[str]) -> pq.ParquetFile:
    """Open a part so that texts with a dictionary are read as numbers of its entries."""
    if isinstance(source, pa.BufferReader):
        source.seek(0)
    return pq.ParquetFile(source, metadata=metadata, read_dictionary=columns)


def _repeated_bytes(source: Any, metadata: pq.FileMetaData, columns: list[str], most: int) -> int:
    """Return the bytes of texts, each counted as often as it occurs, from their dictionaries."""
    total = 0
    with _reopened(source, metadata, columns) as file:
        for batch in file.iter_batches(columns=columns):
            for array in batch.columns:
                if not pa.types.is_dictionary(array.type):
                    total += array.nbytes  # texts within lists, which are small here and have no dictionary in memory
                elif len(array.dictionary):
                    lengths = pc.cast(pc.binary_length(array.dictionary), pa.int64())
                    total += pc.sum(lengths.take(array.indices)).as_py() or 0
            if total > most:
                break
    return total


REQUIRED: dict[str, tuple[str, ...]] = KEYS | {"attempts": ("attempt_id", "event", "trial_id", "at")}
"""Columns that every row of a table has."""


def check_columns(table: str, known: pa.Schema, data: pa.Table, columns: Sequence[str] | None) -> None:
    """Raise `ValueError` for columns that cannot have come from this project.

    A known column may have a narrower type than today, and columns of a user's settings may have any.
    """
    names = data.column_names
    if len(names) > len(set(names)):
        raise ValueError("it has two columns of one name")
    for name in REQUIRED[table]:
        if columns is not None and name not in columns:
            continue
        if name not in names or data[name].null_count:
            raise ValueError(f"it has rows without {name}")
    for field in known:
        if field.name in names:
            found = data.schema.field(field.name).type
            if not found.equals(field.type) and _family(wider(field.type, found)) != _family(field.type):
                raise ValueError(f"its column {field.name} is {found}, and not {field.type}")


def _family(kind: pa.DataType) -> Any:
    """Return what types have in common that code can use alike."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    return kind.id


def check_values(data: pa.Table) -> None:
    """Raise `ValueError` for texts that are not UTF-8, and for times that Python cannot express."""
    data.validate(full=True)
    for field, column in zip(data.schema, data.columns, strict=True):  # two columns may have one name
        if pa.types.is_timestamp(field.type) and data.num_rows:
            times = pc.cast(column, pa.timestamp("us", field.type.tz), safe=False)
            earliest, latest = (each.as_py() for each in pc.min_max(times.cast(pa.int64())).values())
            if earliest is not None and not _EARLIEST <= earliest <= latest <= _LATEST:
                raise ValueError(f"its column {field.name} has times that are in no year from 2 to 9996")
