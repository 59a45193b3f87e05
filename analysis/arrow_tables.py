"""Arrow tables whose columns carry a description."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from orch.store.footer_rows import parse_lines


def column(name: str, kind: pa.DataType, description: str) -> pa.Field:
    """Return a column with a description."""
    return pa.field(name, kind, metadata={"description": description})


def description(field: pa.Field) -> str:
    """Return the description of a column; empty for a column of code that is not loaded."""
    metadata: Mapping[bytes, bytes] = field.metadata or {}
    return metadata.get(b"description", b"").decode()


def to_table(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Convert rows to a table, through JSON: pyarrow's `from_pylist` would import pandas, which is slow."""
    return parse_lines([json.dumps(row, allow_nan=False).encode() for row in rows], schema)
