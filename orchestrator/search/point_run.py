"""What a worker does with a point: train its seeds in turn, each a trial of its own. Knows nothing of Ray."""

import math
import time
from collections.abc import Sequence
from typing import Any

from orch.running.failures import TrialError
from orch.running.log import worker_log
from orch.running.worker import Unit, UnitRun
from orch.search.objective import Objective
from orch.search.validations import Curve, combined
from orch.store import Outcome, Store


class PointUnit(Unit):
    """A point's trials that have no result yet, and what it takes to report on the point as a whole."""

    objective: dict[str, str]
    known: dict[str, list[tuple[int, float]]]
    """Step and validation accuracy, for each of the point's trials that were finished before."""
    rungs: Sequence[int]
    """Steps at which the driver decides whether the point goes on."""
    told_path: str
    """Where in the store the driver says what became of the point."""


class PointRun:
    """A point on its way. All seeds stay within one validation of each other, so that points can be compared."""

    def __init__(self, unit: PointUnit):
        self._unit = unit
        self._store = Store.open(unit["store"])
        self._log = worker_log(self._store)
        self._objective = Objective(**unit["objective"])
        self._told_up_to = 0
        self._runs: dict[str, UnitRun] = {}
        try:
            for values, (trial_id, attempt_id) in zip(unit["trials"], unit["attempts"].items(), strict=True):
                alone: Any = {**unit, "trials": [values], "attempts": {trial_id: attempt_id}}
                self._runs[trial_id] = UnitRun(alone, num_in_turn=len(unit["trials"]))
        except TrialError:
            self.stop()
            raise
        self._begun = {trial_id: run.step for trial_id, run in self._runs.items()}

    def run_for(self, seconds: float) -> dict[str, Any]:
        """Train until about that much time has gone by, a rung is reached or all is done; what has happened."""
        until = time.monotonic() + seconds
        finished = []
        reached = False
        try:
            while not self.done and not reached and time.monotonic() < until:
                before = self._slowest_step
                run = min((run for run in self._runs.values() if not run.done), key=lambda run: run.step)
                finished += run.advance()
                reached = any(before < rung <= self._slowest_step for rung in self._unit["rungs"])
        except TrialError:
            self.stop()
            raise
        self._log.flush()
        return {
            "finished": finished,
            "done": self.done,
            "step": max(run.step for run in self._runs.values()),
            "steps": {trial_id: run.step for trial_id, run in self._runs.items()},
            "begun": self._begun,
            "validations": self._new_validations(),
        }

    @property
    def done(self) -> bool:
        return all(run.done for run in self._runs.values())

    @property
    def _slowest_step(self) -> float:
        return min((run.step for run in self._runs.values() if not run.done), default=math.inf)

    def _new_validations(self) -> list[tuple[int, float]]:
        """Those that have not been told yet; after a resume, also what was before it."""
        curves: list[Curve] = list(self._unit["known"].values())
        for trial_id, run in self._runs.items():
            curves.append([(point.step, point.validation_accuracy) for point in run.curves[trial_id]])
        found = combined(curves, self._objective, up_to=self._slowest_step)
        new = [(step, value) for step, value in found if step > self._told_up_to]
        if new:
            self._told_up_to = new[-1][0]
        return new

    def stop(self) -> None:
        """Leave off cleanly. If the driver has said what became of the point, it was pruned; if not, interrupted. The
        checkpoints stay in either case."""
        was_told = not self.done and self._store.get_json(self._unit["told_path"]) is not None
        for run in self._runs.values():
            run.stop(Outcome.PRUNED if was_told else Outcome.INTERRUPTED)
