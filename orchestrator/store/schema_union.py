"""Merging tables with different schemas: columns are matched by name, and types are widened where they differ."""

import json
from collections.abc import Iterable, Sequence

import pyarrow as pa

from orch.core.errors import UnknownName

_FEW = 8


def union(tables: Iterable[pa.Table]) -> pa.Table | None:
    """Concatenate tables. A column that a table lacks is null there; columns of different types get a wider type."""
    alike: list[list[pa.Table]] = []
    for table in tables:
        for group in alike:
            if group[0].schema.equals(table.schema):
                group.append(table)
                break
        else:
            alike.append([table])
    merged = [_joined(group) for group in alike]
    if len(merged) > 1:
        kinds: dict[str, pa.DataType] = {}
        for table in merged:
            for field in table.schema:
                kinds[field.name] = wider(kinds.get(field.name, field.type), field.type)
        merged = [_widen(table, kinds) for table in merged]
    return pa.concat_tables(merged, promote_options="default") if merged else None


def _joined(group: list[pa.Table]) -> pa.Table:
    """Concatenate tables of one schema. Many small ones are copied into one piece; large ones are few, and stay."""
    joined = pa.concat_tables(group)
    return joined if len(group) <= _FEW else joined.combine_chunks()


def conform(table: str, known: pa.Schema, data: pa.Table | None, columns: Sequence[str] | None) -> pa.Table:
    """Return `data` with every known column, described, then the others by name; or with just `columns`.

    A column with a `past` in its metadata has that value in the place of null: rows from before it was there.
    """
    data = pa.Table.from_batches([], known) if data is None else data  # `empty_table` would import pandas
    fields = {field.name: field for field in [*data.schema, *known]}
    fields = {name: fields[name] for name in dict.fromkeys([*known.names, *sorted(data.column_names)])}
    for name in columns or ():
        if name not in fields:
            raise UnknownName(f"column of {table}", name, fields)
    arrays, kept = [], []
    for name in fields if columns is None else columns:
        field = fields[name]
        if name in data.column_names:
            field = field.with_type(wider(field.type, data.schema.field(name).type))
            arrays.append(_cast(data[name], field.type))
        else:
            arrays.append(pa.chunked_array([pa.nulls(data.num_rows, field.type)]))
        if b"past" in (field.metadata or {}) and arrays[-1].null_count:
            arrays[-1] = arrays[-1].fill_null(json.loads(field.metadata[b"past"]))
        kept.append(field)
    return pa.Table.from_arrays(arrays, schema=pa.schema(kept))


def wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type that holds both without loss, such as int64 for int32; text if there is none."""
    if one.equals(other):
        return one
    try:
        pair = [pa.schema([("", kind)]) for kind in (one, other)]
        return pa.unify_schemas(pair, promote_options="permissive").field(0).type
    except pa.ArrowTypeError:
        return pa.string()


def _widen(table: pa.Table, kinds: dict[str, pa.DataType]) -> pa.Table:
    for position, field in enumerate(table.schema):
        if not field.type.equals(kinds[field.name]):
            table = table.set_column(position, field.name, _cast(table[field.name], kinds[field.name]))
    return table


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type.equals(kind):
        return column
    if pa.types.is_string(kind) and pa.types.is_nested(column.type):
        return pa.chunked_array([[None if value is None else str(value) for value in column.to_pylist()]], kind)
    # A float holds the first digits of a whole number of 18 digits, and the cast would otherwise raise an error.
    return column.cast(kind, safe=not (pa.types.is_integer(column.type) and pa.types.is_floating(kind)))
