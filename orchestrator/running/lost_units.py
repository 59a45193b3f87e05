"""Units whose worker was lost before it could say how its attempts ended. Imports no Ray.

Its last results may be in the store without the driver knowing. The more results there are, the longer the search for
them takes, so it runs in a thread and the driver can serve other workers. What is retried, and how often, is decided in
`failures`.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from orch.core.errors import OrchError
from orch.running.failures import Failure
from orch.running.units import Unit
from orch.running.worker_messages import SUMMARY
from orch.store import Store
from orch.store.attempts import Attempt


@dataclass
class LostUnit:
    """A unit with the failure that ended its attempts, and what the store has of them."""

    unit: Unit
    failure: Failure
    finished: list[dict[str, Any]] = field(default_factory=list)
    """Summaries of its results that were never reported."""
    error: OrchError | None = None
    """The error that kept the ends of its other attempts from being written."""


class LostUnits:
    """Examines lost units in a thread: finds their unreported results, and ends the attempts that have none."""

    def __init__(self, store: Store, driver_id: str, device: str):
        self._store, self._driver_id, self._device = store, driver_id, device
        self._changed = threading.Condition()
        self._waiting: list[LostUnit] = []
        self._examined: list[LostUnit] = []
        self._num_open = 0
        self._thread: threading.Thread | None = None
        self._bug: BaseException | None = None

    def __bool__(self) -> bool:
        """Return whether there are lost units that `collect` has not returned yet."""
        return self._num_open > 0

    def add(self, unit: Unit, failure: Failure) -> None:
        """Begin to examine a unit."""
        with self._changed:
            self._num_open += 1
            self._waiting.append(LostUnit(unit, failure))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="orch-lost-units")
                self._thread.start()

    def collect(self, wait: bool = False) -> list[LostUnit]:
        """Return the units that were examined since the last call; with `wait`, every one that was added."""
        with self._changed:
            if wait:
                self._changed.wait_for(lambda: self._thread is None)
            if self._bug is not None:
                raise self._bug
            found, self._examined = self._examined, []
            self._num_open -= len(found)
        return found

    def _run(self) -> None:
        try:
            while batch := self._next_batch():
                self._examine(batch)
                with self._changed:
                    self._examined += batch
        except BaseException as bug:
            with self._changed:
                self._bug, self._thread = bug, None
                self._changed.notify_all()

    def _next_batch(self) -> list[LostUnit]:
        """Take all units that wait. If there are none, the thread ends, and `add` starts another one."""
        with self._changed:
            batch, self._waiting = self._waiting, []
            if not batch:
                self._thread = None
                self._changed.notify_all()
        return batch

    def _examine(self, batch: list[LostUnit]) -> None:
        lost = {attempt_id: each for each in batch for attempt_id in each.unit.attempts.values()}
        try:
            rows = self._results(lost)
        except OrchError:
            rows = []  # the store is unreachable: the attempts count as lost, and the first of two results counts
        finished = set()
        for row in rows:
            each = lost[row["attempt_id"]]
            if row["trial_id"] not in each.unit.finished:
                each.finished.append(row)
                finished.add(row["trial_id"])
        try:
            self._store.write("attempts", [row for each in batch for row in self._end_rows(each, finished)])
        except OrchError as error:
            for each in batch:
                each.error = error

    def _results(self, attempt_ids: Iterable[str]) -> list[dict[str, Any]]:
        results = self._store.read("trials", SUMMARY)
        rows: list[dict[str, Any]] = results.filter(
            pc.is_in(results["attempt_id"], value_set=pa.array(attempt_ids, pa.string()))
        ).to_pylist()
        return rows

    def _end_rows(self, lost: LostUnit, finished: set[str]) -> Iterable[dict[str, Any]]:
        """Yield the end rows that the worker could not write."""
        for trial_id, attempt_id in lost.unit.attempts.items():
            if trial_id not in lost.unit.finished and trial_id not in finished:
                attempt = Attempt(
                    attempt_id=attempt_id, trial_id=trial_id, driver_id=self._driver_id, device=self._device
                )
                yield attempt.end_row(lost.failure.outcome, lost.unit.step, lost.failure.error, by_driver=True)
