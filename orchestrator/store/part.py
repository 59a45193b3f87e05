"""A part: an immutable Parquet file with some rows of one table.

A worker writes parts of level 0; a compaction merges parts of one level into one part of the next, which names them in
its footer (`orch.replaces`). A row therefore only moves to higher levels, and is written there
before it is deleted from the lower one. A listing of the levels in order finds every row, even during a compaction.
"""

import io
import json
import re
import secrets
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from orch.core.checksum import checksum
from orch.core.errors import StoreTooNew, UnknownName
from orch.store.footer_rows import KEY, make_note

SCHEMA_VERSION = 1
"""The version of the columns. Raise it when the meaning of a column changes; a new column is null in older parts."""
LEVELS = 10
_SMALL_ROWS = 1000
_CHECKED_NAME = re.compile(r"[^-]+-[^-]+-([0-9a-f]{8})\.parquet")


class DamagedPart(Exception):
    """Raised for a part that is not, or no longer, valid Parquet."""


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a table."""

    path: str
    """Its path below the store's root: `<table>/<level>/<name>`."""
    size: int

    @property
    def table(self) -> str:
        return self.path.split("/")[0]

    @property
    def level(self) -> int:
        level = self.path.split("/")[1]
        return int(level) if level.isdigit() else 0

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def checksum(self) -> str | None:
        """The checksum that all its bytes must have; None for a part from before there were any."""
        named = _CHECKED_NAME.fullmatch(self.name)
        return named[1] if named else None


@dataclass(frozen=True, slots=True)
class Contents:
    data: pa.Table
    footer: "Footer"


@dataclass(frozen=True, slots=True)
class Footer:
    num_rows: int
    replaces: frozenset[str]
    """Paths of the parts whose rows are all in this one."""


def new_path(table: str, level: int, data: bytes) -> str:
    """Return a unique path for a new part with these bytes. Paths of later parts sort later."""
    return f"{table}/{level}/{time.time_ns() // 1_000_000:013d}-{secrets.token_hex(6)}-{checksum([data])}.parquet"


def to_table(table: str, schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    known = set(schema.names)
    for row in rows:
        for name in row:
            if name not in known:
                raise UnknownName(f"column of {table}", name, known)
    return pa.Table.from_pylist(rows, schema=schema)


def encode(table: str, schema: pa.Schema, data: pa.Table, replaces: Sequence[str] = ()) -> bytes:
    metadata = {"orch.table": table, "orch.schema_version": str(SCHEMA_VERSION)}
    if replaces:
        metadata["orch.replaces"] = json.dumps(list(replaces))
    options: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
    if data.num_rows < _SMALL_ROWS:
        # Compression and dictionaries make small parts larger, and three times slower to read.
        options |= {"compression": "none", "use_dictionary": False, "write_statistics": False, "store_schema": False}
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, data.schema.remove_metadata(), **options) as writer:
        writer.write_table(data, row_group_size=1 << 17)
        if not replaces and data.schema.equals(schema):
            note = make_note(data, columns_checksum(schema), sink.getvalue())
            metadata |= {KEY: note} if note else {}
        writer.add_key_value_metadata(metadata)
    return sink.getvalue()


def columns_checksum(schema: pa.Schema) -> int:
    """Return a checksum of the columns' names, types and meaning."""
    columns = [f"{field.name} {field.type}" for field in schema]
    return zlib.crc32("\n".join([str(SCHEMA_VERSION), *columns]).encode())


def decode(source: Any, columns: Sequence[str] | None, location: str, checked: bool) -> Contents:
    """Read the rows of a part, from its bytes or anything that pyarrow can read. Columns that it lacks are left out.

    `checked` says that the checksum of the whole part was compared.
    """
    try:
        with pq.ParquetFile(_readable(source), page_checksum_verification=not checked) as file:
            footer = _footer(file.metadata, location, checked)
            data = file.read(
                columns=None if columns is None else list(columns), use_threads=not isinstance(source, bytes)
            )
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _damage_or(error) from error
    return Contents(data.replace_schema_metadata(None), footer)


def decode_footer(source: Any, location: str, checked: bool) -> Footer:
    """Read the footer of a part; `checked` says that the checksum of the whole part was compared."""
    try:
        return _footer(pq.read_metadata(_readable(source)), location, checked)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise _damage_or(error) from error


def _readable(source: Any) -> Any:
    return pa.BufferReader(source) if isinstance(source, bytes) else source


def _footer(metadata: pq.FileMetaData, location: str, checked: bool) -> Footer:
    notes = metadata.metadata or {}
    version = int(notes.get(b"orch.schema_version", b"1"))
    if version > 1 and not checked:
        raise ValueError(f"it names version {version} of the schema, which came after checksums, and has none")
    if version > SCHEMA_VERSION:
        raise StoreTooNew(
            f"the store at {location} was written by a later version of orch (schema {version}, this one knows"
            f" {SCHEMA_VERSION}): upgrade orch"
        )
    return Footer(metadata.num_rows, frozenset(json.loads(notes.get(b"orch.replaces", b"[]"))))


def _damage_or(error: Exception) -> Exception:
    """Return `DamagedPart` for an error without a system error number, which is caused by the bytes themselves."""
    unsupported = isinstance(error, NotImplementedError) and not pa.Codec.is_available("zstd")
    if unsupported or isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:
        return error
    return DamagedPart(" ".join(str(error).split()))
