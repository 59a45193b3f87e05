"""One run of a search: provides points to the driver, and records their results in the store."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from orch.core.counted import counted
from orch.core.errors import OrchError
from orch.running.display import Display
from orch.running.failures import Failure
from orch.running.lease import Lease
from orch.running.options import RunOptions
from orch.running.progress import Progress, ProgressCount
from orch.running.session import Session, compacting, interruptible
from orch.running.units import Turn, Unit
from orch.search.history import History, Point, PointResult, PointState
from orch.search.objective import COLUMNS
from orch.search.points import PointUnit
from orch.search.space import Params, describe_point
from orch.search.spec import SearchSpec
from orch.search.strategy import NextPoint, Strategy
from orch.search.validations import at_rungs, combined
from orch.store import Store

MOST_PROPOSALS = 50
"""A sampler that proposes known points this many times in a row has nothing new to propose."""


@dataclass
class SearchSummary:
    """The outcome of a run of a search."""

    num_ended: int
    """Points that finished, were pruned or failed."""
    failed: int
    seconds: float
    stopped: str
    """The reason for stopping before the search was complete; empty if it is complete."""


class _Progress(Progress):
    """The progress of a search: its points, the best of them, and the training steps spent."""

    spent: int = 0
    num_pruned: int = 0

    def line(self) -> str:
        (count,) = self.counts.values()
        parts = [f"{count.done:,} of at most {counted(count.total, 'point')}", f"{count.running} running"]
        parts += [f"{self.num_pruned} pruned"] * bool(self.num_pruned)
        parts += [f"{count.failed} failed"] * bool(count.failed)
        parts += [] if count.best is None else [f"best {count.best:.3f} ({count.best_label})"]
        return ", ".join([*parts, counted(self.spent, "step")])


class SearchSession(Session):
    """One run of a search. It is the driver's listener."""

    def __init__(
        self,
        question: SearchSpec,
        strategy: Strategy,
        history: History,
        store: Store,
        machines: Any,
        lease: Lease,
        options: RunOptions,
    ):
        from orch.search import tuning

        super().__init__(store, machines, lease, options)
        self._question, self._strategy, self._history = question, strategy, history
        self._suggest = tuning.suggest
        self._rungs = tuning.Rungs(question.rungs, question.most_steps)
        self._sampler_exhausted = False
        self._num_ended = 0
        self._resumed = {point.name for point in history.under_way}
        self._to_restart = [*history.under_way]
        for result in history.results:
            for step, value in result.rungs:
                if step in self._rungs.steps:
                    self._rungs.continues(result.key, step, value)
            if result.state is PointState.FAILED and result.key not in {point.key for point in self._to_restart}:
                self._to_restart.append(Point(self._history.last_number + 1, result.params))
                self._history.record_point(self._to_restart[-1])
        self._running_points: dict[str, Point] = {}
        self._progress = _Progress({question.id: ProgressCount(total=strategy.num_points)}, 0.0)
        self._show_counts()

    def run(self) -> SearchSummary:
        """Train points until the search is complete or stopped."""
        from orch.running import driver
        from orch.search import tuning

        self.log.event("search started", search=self._question.id, machines=self._machines.description)
        display = self._display = Display(self._progress, quiet=self._options.quiet)
        driver_id = self._lease.driver_id
        state = tuning.PointsRun(
            self._question,
            self._rungs,
            self._machines,
            self._options,
            self,
            self._store,
            driver_id,
            self._lease.number or 0,
        )
        with interruptible(self.interrupt), compacting(self._store, self.log), display:
            driver.run(state, tuning.PointWorker, tuning.Pruning(driver_id))
        failed = sum(result.state is PointState.FAILED for result in self._history.results)
        self.log.event("search ended", ended=self._num_ended, failed=failed, stopped=self._stopped)
        return SearchSummary(self._num_ended, failed, 0.0, self._stopped)

    # Choosing points.

    def next_point(self) -> PointUnit | None:
        while (point := self._next()) is not None:
            try:
                trials = self._question.trials(point.params)
            except OrchError as error:
                message = "; ".join(str(error).splitlines())
                invalid = PointResult(point.number, point.params, PointState.INVALID, message=message)
                self._history.record_result(point, invalid)
                self._say(f"{describe_point(point.params)}: left out: {message}")
                continue
            rows = self._rows({trial.id for trial in trials})
            if point.name not in self._resumed:
                point = replace(point, found=tuple(sorted(rows)))
                self._history.record_point(point)
            unit = PointUnit(trials, finished=set(rows), point=point, result_path=self._history.result_path(point))
            unit.known = self._curves(set(rows))
            if unit.open_trials:
                self._running_points[point.name] = point
                return unit
            unit.validations = dict(combined(list(unit.known.values()), self._question.objective))
            if unit.validations:
                self._rungs.ended(point.key, unit.validations[max(unit.validations)])
            self.ended(unit, pruned=False)
        return None

    def _next(self) -> Point | None:
        """Return a point that was under way when the search was stopped, or a new one, if there is one now."""
        if self._to_restart:
            return self._to_restart.pop(0)
        wanted = self._next_wanted()
        params = None if wanted is None else self._choose(wanted)
        self._sampler_exhausted = wanted is not None and params is None
        if wanted is None or params is None:
            return None
        return Point(self._history.last_number + 1, params, wanted.to_the_end)

    def _next_wanted(self) -> NextPoint | None:
        under_way = self._history.under_way
        running = {point.key for point in under_way}
        known = [
            each for each in self._history.results if each.state is not PointState.FAILED or each.key not in running
        ]
        return self._strategy.next(known, under_way)

    def _choose(self, wanted: NextPoint) -> Params | None:
        if wanted.to_the_end:
            return wanted.fixed
        results, under_way = self._history.results, self._history.under_way
        taken = {each.key for each in results} | {point.key for point in under_way}
        for turn in range(MOST_PROPOSALS):
            params = self._suggest(self._question, results, under_way, wanted.fixed, turn)
            if Point(0, params).key not in taken:
                return params
        if self._question.space.is_finite:
            rest = (params for params in self._question.space.points(wanted.fixed) if Point(0, params).key not in taken)
            return next(rest, None)
        return None

    def nothing_left(self) -> bool:
        return self._sampler_exhausted or (not self._to_restart and self._next_wanted() is None)

    def pointless(self, unit: PointUnit) -> str:
        return self._strategy.pointless(unit.point, self._history.results)

    def _rows(self, trial_ids: set[str]) -> dict[str, dict[str, Any]]:
        rows = self._store.read("trials", COLUMNS).to_pylist()
        return {row["trial_id"]: row for row in rows if row["trial_id"] in trial_ids}

    def _curves(self, trial_ids: set[str]) -> dict[str, list[tuple[int, float]]]:
        found: dict[str, list[tuple[int, float]]] = {}
        if trial_ids:
            for row in self._store.read("curves", ("trial_id", "step", "validation_accuracy")).to_pylist():
                if row["trial_id"] in trial_ids:
                    found.setdefault(row["trial_id"], []).append((row["step"], row["validation_accuracy"]))
        return {trial_id: sorted(curve) for trial_id, curve in found.items()}

    # Recording results.

    def ended(self, unit: PointUnit, pruned: bool) -> None:
        rows = self._rows({trial.id for trial in unit.trials})
        steps = unit.steps | {trial_id: row["steps_trained"] for trial_id, row in rows.items()}
        value = test = None
        if not pruned:
            in_order = [rows[trial.id] for trial in unit.trials]
            value, test = self._question.objective.value(in_order), self._question.objective.test(in_order)
        state = PointState.PRUNED if pruned else PointState.FINISHED
        rungs = at_rungs(unit.validations, self._rungs.steps, has_ended=not pruned)
        message = unit.reason if pruned else ""
        self._record(unit, state, value=value, test=test, steps=steps, rungs=rungs, message=message)

    def _record(self, unit: PointUnit, state: PointState, **facts: Any) -> None:
        point = unit.point
        spent = self._spent(unit, facts.get("steps", {}))
        result = PointResult(point.number, point.params, state, spent=spent, **facts)
        self._history.record_result(point, result)
        self._num_ended += 1
        self._running_points.pop(point.name, None)
        self._lease.release([trial.id for trial in unit.trials])
        self._show_counts()
        self.log.event("point ended", point=point.name, state=str(state), value=result.value, spent=result.spent)
        score = "" if result.value is None else f" {result.value:.3f}"
        why = f" ({result.message})" if result.message else ""
        self._say(f"{describe_point(point.params)}: {state}{score}{why}, {counted(result.spent, 'step')}")

    def _spent(self, unit: PointUnit, steps: dict[str, int]) -> int:
        """Return the training steps that this attempt added: without those of earlier results and earlier attempts."""
        before: dict[str, int] = {}
        for result in self._history.all_results:
            if result.key == unit.point.key and result.number < unit.point.number:
                before |= result.steps
        if not before and unit.point.name not in self._resumed:
            before = unit.begun
        return sum(
            max(0, step - before.get(trial_id, 0))
            for trial_id, step in steps.items()
            if trial_id not in unit.point.found
        )

    # The methods of the driver's listener.

    def started(self, unit: Unit) -> None:
        self._lease.claim(unit.open_ids)
        self._show_counts()
        self.log.event("point started", trials=unit.open_ids)

    def finished(self, unit: Unit, summary: dict[str, Any]) -> None:
        self.log.event("trial finished", **summary)

    def failed(self, unit: Unit, failure: Failure, again: bool) -> None:
        assert isinstance(unit, PointUnit)
        self.log.event("point failed", point=unit.point.name, signature=failure.signature, again=again)
        if not again and not self._stopped and not failure.store_lost:
            try:
                self._record(unit, PointState.FAILED, steps=unit.steps, message=failure.message)
            except OrchError as error:
                self._stopped = str(error)

    def tick(self, running: Sequence[Unit], num_waiting: int) -> None:
        under_way = sum(self._spent(unit, unit.steps) for unit in running if isinstance(unit, PointUnit))
        self._progress.spent = self._history.spent + under_way
        super().tick(running, num_waiting)

    def turn(self, unit: Unit) -> Turn:
        return Turn.NOW

    def _show_counts(self) -> None:
        results = self._history.results
        (count,) = self._progress.counts.values()
        count.done = sum(each.state in (PointState.FINISHED, PointState.PRUNED) for each in results)
        count.failed = sum(each.state is PointState.FAILED for each in results)
        count.running = len(self._running_points)
        self._progress.num_pruned = sum(each.state is PointState.PRUNED for each in results)
        self._progress.spent = self._history.spent
        for each in results:
            objective = self._question.objective
            if each.value is not None and (count.best is None or objective.better(each.value, count.best)):
                count.best, count.best_label = each.value, describe_point(each.params)
