"""The work of a worker on a point: train the trials of its seeds in turn. Imports no Ray."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orch.running.driver_log import worker_log
from orch.running.failures import TrialError
from orch.running.forked_unit import ForkedUnit, open_unit
from orch.running.worker import UnitRun
from orch.running.worker_messages import UnitRequest
from orch.search.objective import Objective
from orch.search.validations import Curve, combined
from orch.store import Outcome, Store


class PointRequest(UnitRequest):
    """The message to a worker about a point: its trials without a result, and all it takes to report on the point."""

    objective: dict[str, str]
    known: dict[str, list[tuple[int, float]]]
    """Step and validation accuracy of each of the point's trials that had a result before."""
    rungs: Sequence[int]
    """Steps at which the driver decides whether the point continues."""
    result_path: str
    """The path in the store of the point's result, which the driver writes."""


class PointRun:
    """An attempt at a point. All seeds stay within one validation of each other, so that points can be compared."""

    def __init__(self, request: PointRequest):
        self._request = request
        self._store = Store.open(request["store"])
        self._log = worker_log(self._store)
        self._objective = Objective(**request["objective"])
        self._reported_up_to = 0
        self._runs: dict[str, UnitRun | ForkedUnit] = {}
        try:
            for values, (trial_id, attempt_id) in zip(request["trials"], request["attempts"].items(), strict=True):
                alone: Any = {**request, "trials": [values], "attempts": {trial_id: attempt_id}}
                self._runs[trial_id] = open_unit(alone, num_in_turn=len(request["trials"]))
        except TrialError:
            self.stop()
            raise
        self._begun = {trial_id: run.step for trial_id, run in self._runs.items()}

    def run_for(self, seconds: float) -> dict[str, Any]:
        """Train for about this long, to the next rung or to the end, and return the report for the driver."""
        until = time.monotonic() + seconds
        reached = False
        try:
            while not self.done and not reached and time.monotonic() < until:
                before = self._slowest_step
                run = min((run for run in self._runs.values() if not run.done), key=lambda run: run.step)
                run.advance(until)
                reached = any(before < rung <= self._slowest_step for rung in self._request["rungs"])
        except TrialError as error:
            self.stop()
            finished = (*error.failure.finished, *self._take_finished())
            raise TrialError(replace(error.failure, finished=finished)) from error
        self._log.flush()
        return {
            "finished": self._take_finished(),
            "done": self.done,
            "step": max(run.step for run in self._runs.values()),
            "steps": {trial_id: run.step for trial_id, run in self._runs.items()},
            "begun": self._begun,
            "validations": self._new_validations(),
            "changes": [text for run in self._runs.values() for text in run.changes],
        }

    def _take_finished(self) -> list[dict[str, Any]]:
        return [summary for run in self._runs.values() for summary in run.take_finished()]

    @property
    def done(self) -> bool:
        return all(run.done for run in self._runs.values())

    @property
    def _slowest_step(self) -> float:
        return min((run.step for run in self._runs.values() if not run.done), default=math.inf)

    def _new_validations(self) -> list[tuple[int, float]]:
        """Return the validations of the point that were not reported yet, including those from before a resume."""
        curves: list[Curve] = list(self._request["known"].values())
        for trial_id, run in self._runs.items():
            curves.append([(point.step, point.validation_accuracy) for point in run.curves[trial_id]])
        found = combined(curves, self._objective, up_to=self._slowest_step)
        new = [(step, value) for step, value in found if step > self._reported_up_to]
        if new:
            self._reported_up_to = new[-1][0]
        return new

    def stop(self) -> None:
        """Write checkpoints, and end the attempts: as pruned if the driver wrote a result, else as interrupted."""
        was_pruned = not self.done and self._store.get_json(self._request["result_path"]) is not None
        for run in self._runs.values():
            run.stop(Outcome.PRUNED if was_pruned else Outcome.INTERRUPTED)
