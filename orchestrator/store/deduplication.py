"""Removing duplicate rows, and choosing the result that counts of several results of a trial."""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orch.store.attempts import NUMBERED
from orch.store.columns import KEYS, TIMES


def text_array(texts: Iterable[str]) -> pa.Array:
    """Convert texts to an Arrow array; `pa.array` would import pandas."""
    data = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, data)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(data), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(data))])


def text_scalar(text: str) -> pa.Scalar:
    """Convert a text to an Arrow scalar; `pa.scalar` would import pandas."""
    return text_array([text])[0]


def is_among(column: pa.ChunkedArray | pa.Array, others: pa.ChunkedArray) -> np.ndarray:
    """Return for each text whether it is among the others, without making Python objects of them."""
    found = pc.is_in(column, value_set=one_array(others)).cast(pa.uint8())
    return np.from_dlpack(one_array(found) if isinstance(found, pa.ChunkedArray) else found).astype(bool)


_SLASH = text_scalar("/")
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""A multiplier that spreads hashes."""


def unique(table: str, data: pa.Table) -> pa.Table:
    """Return `data` without duplicates of earlier rows, which a retried write or two compactions at once leave."""
    data = _by_time(table, data)
    return _take(data, first_of_each(data, KEYS[table]))


def each_row_once(table: str, data: pa.Table) -> pa.Table:
    """Return `data` without duplicates, like `unique` but in any order: unchanged if there are none, as most often."""
    return data if _all_differ(data, KEYS[table]) else unique(table, data)


def standing(trials: pa.Table, withdrawn: pa.Table) -> pa.Table:
    """Return the results that count: of each trial, the first that was not withdrawn.

    The first is the one with the smallest attempt id, which follows the order of drivers and attempts, and before all
    of these the earliest of those whose ids earlier versions made. What clocks say of the others decides nothing.
    """
    trials = _by_time("trials", trials)
    if withdrawn.num_rows:
        trials = trials.filter(_not_among(trials, withdrawn))
    firsts = first_of_each(trials, ("trial_id",))
    if len(firsts) == trials.num_rows:
        return trials
    trials = _take(trials, _in_order_of_attempts(trials))
    return _by_time("trials", _take(trials, first_of_each(trials, ("trial_id",))))


def _in_order_of_attempts(trials: pa.Table) -> np.ndarray:
    """Return the numbers of the rows, which are sorted by time, in the order in which results count."""
    numbered = pc.fill_null(pc.match_substring_regex(trials["attempt_id"], NUMBERED), False)
    ids = pc.if_else(numbered, trials["attempt_id"], "")
    keys = pa.Table.from_arrays([numbered, ids, numbers(np.arange(trials.num_rows))], names=["numbered", "id", "place"])
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    return np.from_dlpack(order)


def each_once(trials: pa.Table, withdrawn: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Split results into those to keep, and later results of trials that have an earlier one.

    Withdrawn results are kept, and of the others the first of each trial: what plain readers of Parquet should see.
    """
    counts = _not_among(trials, withdrawn)
    kept, others = trials.filter(pc.invert(counts)), _by_time("trials", trials.filter(counts))
    others = _take(others, _in_order_of_attempts(others))
    firsts = first_of_each(others, ("trial_id",))
    later = np.setdiff1d(np.arange(others.num_rows), firsts)
    if not len(later):
        return trials, others.slice(0, 0)
    return pa.concat_tables([others.take(numbers(firsts)), kept]), others.take(numbers(later))


def standing_curves(curves: pa.Table, results: pa.Table, withdrawn: pa.Table) -> pa.Table:
    """Return the curves that count: of a finished trial, the one of its result; of others, all not withdrawn."""
    firsts, inverse = _groups(_codes(curves, ("trial_id", "attempt_id")))
    each = curves.select(["trial_id", "attempt_id"]).take(numbers(firsts))
    finished = pc.is_in(each["trial_id"], value_set=one_array(results["trial_id"]))
    winning = pc.invert(_not_among(each, results))
    counts = pc.or_(winning, pc.and_(pc.invert(finished), _not_among(each, withdrawn)))
    kept = np.from_dlpack(one_array(counts.cast(pa.uint8())))[inverse]
    return curves if kept.all() else curves.take(numbers(np.flatnonzero(kept)))


def _not_among(data: pa.Table, others: pa.Table) -> pa.ChunkedArray:
    """Return for each row whether no row of `others` has its trial and attempt."""
    return pc.invert(pc.is_in(_attempt_of_trial(data), value_set=one_array(_attempt_of_trial(others))))


def _attempt_of_trial(data: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(data["trial_id"], data["attempt_id"], _SLASH, null_handling="replace")


def _by_time(table: str, data: pa.Table) -> pa.Table:
    """Sort rows by time; those without a time come last."""
    time = TIMES[table]
    if time is None:
        return data
    times = one_array(data[time].cast("int64"))
    if not times.null_count:
        order = np.argsort(np.from_dlpack(times), kind="stable")  # parts are sorted: far faster than Arrow's sort then
        in_order = np.from_dlpack(times)[order]
        if (in_order[:-1] < in_order[1:]).all():
            return _take(data, order)
    keys = [(time, "ascending"), *((key, "ascending") for key in KEYS[table][::-1])]
    order = pc.sort_indices(data, sort_keys=keys)
    return _take(data, np.from_dlpack(order))  # `to_numpy` would import pandas


def first_of_each(data: pa.Table, keys: Sequence[str]) -> np.ndarray:
    """Return the numbers, ascending, of the first row with each combination of `keys`."""
    if _all_differ(data, keys):
        return np.arange(data.num_rows)
    codes = _codes(data, keys)
    if (codes[:-1] < codes[1:]).all():  # the order in which trials are written; this check is far faster than sorting
        return np.arange(len(codes))
    _, firsts = np.unique(codes, return_index=True)
    firsts.sort()
    return firsts


def _all_differ(data: pa.Table, keys: Sequence[str]) -> bool:
    """Return whether hashes show that no two rows have equal `keys`, as almost always. False may be wrong."""
    hashes = np.zeros(data.num_rows, np.uint64)
    for key in keys:
        hashes = (hashes ^ _hashes(one_array(data[key]))) * _ODD
        hashes ^= hashes >> np.uint64(29)
    hashes.sort()
    return bool((hashes[:-1] != hashes[1:]).all())


def _hashes(column: pa.Array) -> np.ndarray:
    """Return a number for each value, equal for equal values. Values of one width, such as ids, are not looked up."""
    if pa.types.is_string(column.type) and len(column) and not column.null_count:
        _, offsets, texts = column.buffers()
        ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        width = int(ends[1] - ends[0])
        if width and width % 8 == 0 and (np.diff(ends) == width).all():
            words = np.frombuffer(texts, np.uint64, len(column) * width // 8, int(ends[0])).reshape(len(column), -1)
            found = np.zeros(len(column), np.uint64)
            for place in range(words.shape[1]):
                found = (found ^ words[:, place]) * _ODD
                found ^= found >> np.uint64(32)
            return found
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return np.from_dlpack(encoded.indices).astype(np.uint64)


def _groups(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first place of each code, and for each row the index of its code among these."""
    changes = codes[:-1] != codes[1:]
    if (codes[:-1] <= codes[1:]).all():
        starts = np.concatenate([np.zeros(min(len(codes), 1), np.int64), np.flatnonzero(changes) + 1])
        return starts, np.concatenate([starts[:1], np.cumsum(changes)])
    _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return firsts, inverse


def _codes(data: pa.Table, keys: Sequence[str]) -> np.ndarray:
    """Return a number for each row, equal where all `keys` are equal."""
    codes = np.zeros(data.num_rows, np.int64)
    for key in keys:
        encoded = pc.dictionary_encode(one_array(data[key]), null_encoding="encode")
        codes *= max(len(encoded.dictionary), 1)
        codes += np.from_dlpack(encoded.indices)
    return codes


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    if column.num_chunks == 0:
        return pa.nulls(0, column.type)  # `combine_chunks` would import pandas to make nothing
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _take(data: pa.Table, rows: np.ndarray) -> pa.Table:
    in_order = len(rows) == data.num_rows and bool((rows[:-1] < rows[1:]).all())
    return data if in_order else data.take(numbers(rows))


def numbers(values: np.ndarray) -> pa.Array:
    """Convert integers to an Arrow array; `pa.array` would import pandas."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values, np.int64))])
