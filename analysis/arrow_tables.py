"""Rows as Arrow tables whose columns are described."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from orch.store.footer_rows import parse_lines


def column(name: str, kind: pa.DataType, description: str) -> pa.Field:
    return pa.field(name, kind, metadata={"description": description})


def description(field: pa.Field) -> str:
    """The sentence about a column; a column of code that is not here has none."""
    return (field.metadata or {}).get(b"description", b"").decode()


def to_table(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """By way of JSON: pyarrow's own `from_pylist` imports pandas, which takes longer than most questions."""
    return parse_lines([json.dumps(row, allow_nan=False).encode() for row in rows], schema)
