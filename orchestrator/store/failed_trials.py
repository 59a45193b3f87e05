"""The rule that decides which trials have failed, for plans, status, reports and bundles."""

from collections.abc import Container, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orch.store.attempts import ENDED_WELL, LEFT_OFF, Event, Outcome
from orch.store.deduplication import is_among, numbers, one_array
from orch.store.drivers import live_drivers
from orch.store.store import Store

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DECIDING = ("attempt_id", "trial_id", "driver_id", "event", "outcome", "at")
LOST_SIGNATURE = "lost driver"
"""The `error_signature` of an attempt that was lost with its driver. It says nothing against the trial."""
LOST_DRIVER = {
    "outcome": str(Outcome.LOST),
    "error_signature": LOST_SIGNATURE,
    "error_message": "the attempt never ended: its driver and worker are gone",
}
"""Columns of an attempt that started and did not end, once its driver is dead."""


def failed_trials(store: Store, done: Container[str]) -> set[str]:
    """Return the ids of the trials that have failed, given the ids of those that have a result."""
    return set(failed_attempts(store, done))


def failed_attempts(
    store: Store, done: Container[str] | pa.ChunkedArray, columns: Sequence[str] = ()
) -> dict[str, list[dict[str, Any]]]:
    """Return the failed attempts, oldest first, of every trial that has failed, with `columns` in addition.

    `done` are the ids of the trials that have a result; a column of them is compared much faster than a set.

    A trial has failed if it has no result and its latest attempt went wrong. An attempt without an
    end row is running while its driver lives, and lost once its driver is dead. Interrupted or pruned is not failed.
    """
    if not store.exists():
        return {}
    table = store.read("attempts", list(dict.fromkeys([*_DECIDING, *columns])))
    # Almost all attempts belong to finished trials. They are left out before rows become Python objects.
    open_rows = np.flatnonzero(~_are_done(table["trial_id"], done))
    if not len(open_rows):
        return {}
    table = table.take(numbers(open_rows))
    times = table["at"].cast("int64").to_pylist()  # numbers compare far faster than datetimes
    rows = table.drop_columns("at").to_pylist()
    ended = {row["attempt_id"] for row in rows if row["event"] == Event.END}
    never_ended = any(row["attempt_id"] not in ended for row in rows)
    alive = {driver.driver_id for driver in live_drivers(store)} if never_ended else set()
    failed: dict[str, list[dict[str, Any]]] = {}
    latest_failed: dict[str, bool] = {}
    for at, row in sorted(zip(times, rows, strict=True), key=lambda each: (each[0], each[1]["event"] == Event.END)):
        started_only = row["event"] == Event.START
        if started_only and row["attempt_id"] in ended:
            continue
        if started_only:
            row |= LOST_DRIVER
        fine = row["driver_id"] in alive if started_only else row["outcome"] in ENDED_WELL | LEFT_OFF
        latest_failed[row["trial_id"]] = not fine
        if not fine:
            failed.setdefault(row["trial_id"], []).append(row | {"at": _EPOCH + timedelta(microseconds=at)})
    return {trial_id: attempts for trial_id, attempts in failed.items() if latest_failed[trial_id]}


def _are_done(trial_ids: pa.ChunkedArray, done: Container[str] | pa.ChunkedArray) -> np.ndarray:
    if isinstance(done, pa.ChunkedArray):
        return is_among(trial_ids, done)
    ids = pc.dictionary_encode(one_array(trial_ids))  # each is looked up once
    each = np.fromiter((key in done for key in ids.dictionary.to_pylist()), bool, len(ids.dictionary))
    return np.asarray(each[np.from_dlpack(ids.indices)])
