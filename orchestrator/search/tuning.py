"""The search's use of Ray Tune: OptunaSearch proposes points, ASHA compares them, and workers train them.

A new sampler is made from the history for every proposal, so that a search that was killed continues as if it had not
been.
"""

import hashlib
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, TrialScheduler
from ray.tune.search.optuna import OptunaSearch

from orch.core.errors import OrchError
from orch.running import driver
from orch.running.failures import worth_another_try
from orch.running.machines import Machines
from orch.running.options import RunOptions
from orch.running.run_state import RunState
from orch.running.units import Unit
from orch.search.history import Point, PointResult, PointState
from orch.search.point_run import PointRequest, PointRun
from orch.search.points import Points, PointUnit
from orch.search.space import Dimension, Params, Space, Value
from orch.search.spec import REDUCTION, SearchSpec
from orch.store import Store


def suggest(
    question: SearchSpec,
    results: Sequence[PointResult],
    under_way: Sequence[Point],
    fixed: Mapping[str, Value],
    turn: int,
) -> Params:
    """Propose a point that has the `fixed` values; Optuna's tree-structured Parzen estimator chooses the others.

    A proposal may be a point that is known already. Another `turn` gives another proposal from the same history.
    """
    space = question.space
    digest = hashlib.sha256(f"{question.sampler_seed} {len(results)} {len(under_way)} {turn}".encode()).digest()
    sampler = optuna.samplers.TPESampler(seed=int.from_bytes(digest[:4], "big"))
    storage = optuna.storages.InMemoryStorage()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    search = OptunaSearch(
        {each.name: _distribution(each) for each in space.dimensions},
        metric="objective",
        mode="max" if question.objective.maximised else "min",
        sampler=sampler,
        storage=storage,
        study_name=question.id,
    )
    for each in results:
        _add_result(search, space, each)
    study = optuna.load_study(study_name=question.id, storage=storage)
    for point in under_way:
        study.enqueue_trial(_to_sampler(space, point.params))
        search.suggest(point.name)
    if fixed:
        study.enqueue_trial(_to_sampler(space, fixed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        proposed = search.suggest("new") or {}
    return {each.name: _from_sampler(each, proposed[each.name]) for each in space.dimensions}


def _add_result(search: OptunaSearch, space: Space, result: PointResult) -> None:
    params = _to_sampler(space, result.params)
    if result.state is PointState.FINISHED and result.value is not None:
        search.add_evaluated_point(params, result.value)
    elif result.state is PointState.PRUNED and result.validation is not None:
        values = [value for _, value in result.rungs]
        search.add_evaluated_point(params, result.validation, pruned=True, intermediate_values=values)
    else:
        search.add_evaluated_point(params, 0.0, error=True)


def _distribution(dimension: Dimension) -> BaseDistribution:
    """Return the distribution of a setting. Increasing numbers become places, so that the sampler knows neighbours."""
    if dimension.is_ordered:
        return IntDistribution(0, len(dimension.values) - 1)
    if not dimension.is_range:
        return CategoricalDistribution(dimension.values)
    if dimension.whole:
        return IntDistribution(int(dimension.low), int(dimension.high), log=dimension.is_logarithmic)
    return FloatDistribution(dimension.low, dimension.high, log=dimension.is_logarithmic)


def _to_sampler(space: Space, params: Mapping[str, Value]) -> dict[str, Any]:
    ordered = {name for name in params if space[name].is_ordered}
    return {name: space[name].values.index(value) if name in ordered else value for name, value in params.items()}


def _from_sampler(dimension: Dimension, value: Any) -> Value:
    if dimension.is_range:
        return dimension.rounded(value)
    found: Value = dimension.values[value] if dimension.is_ordered else value
    return found


class Rungs:
    """The accuracies of all points at equal steps, by which ASHA decides which points continue."""

    def __init__(self, rungs: Sequence[int], most_steps: int):
        self.steps = tuple(rungs)
        self._asha = ASHAScheduler(
            time_attr="step",
            metric="validation",
            mode="max",
            max_t=most_steps,
            grace_period=rungs[0] if rungs else most_steps,
            reduction_factor=REDUCTION,
            stop_last_trials=False,
        )
        self._seen: set[str] = set()

    def continues(self, key: str, step: int, value: float) -> bool:
        """Return whether a point with this accuracy at this step continues.

        The first accuracy of each point at each rung is remembered.
        """
        if not self.steps:
            return True
        no_controller: Any = None
        trial: Any = SimpleNamespace(trial_id=key)
        if key not in self._seen:
            self._seen.add(key)
            self._asha.on_trial_add(no_controller, trial)
        decision = self._asha.on_trial_result(no_controller, trial, {"step": step, "validation": value})
        return decision != TrialScheduler.STOP

    def ended(self, key: str, value: float) -> None:
        """Compare a point that has ended at all rungs: at those it did not reach, with its last accuracy."""
        for step in self.steps:
            self.continues(key, step, value)


class PointsRun(RunState):
    """A run that takes its units from a search, point by point, and prunes them."""

    listener: Points

    def __init__(
        self,
        question: SearchSpec,
        rungs: Rungs,
        machines: Machines,
        options: RunOptions,
        points: Points,
        store: Store,
        driver_id: str,
        driver_number: int = 0,
    ):
        super().__init__(deque(), machines, options, points, store, driver_id, driver_number)
        self._question, self._rungs = question, rungs

    @property
    def exhausted(self) -> bool:
        return not self.queue and self.listener.nothing_left()

    def next_unit(self) -> Unit | None:
        try:
            return self.queue.popleft() if self.queue else self.listener.next_point()
        except OrchError as store_error:
            self.error = store_error
            return None

    def request(self, unit: Unit) -> PointRequest:
        assert isinstance(unit, PointUnit)
        objective = self._question.objective
        return PointRequest(
            **super().request(unit),
            objective={"metric": objective.metric, "aggregate": objective.aggregate},
            known=unit.known,
            rungs=self._rungs.steps,
            result_path=unit.result_path,
        )

    def retries(self, unit: Unit) -> list[Unit]:
        return [unit] if worth_another_try(unit.failures) else []

    def is_pruned(self, tune_id: str, report: dict[str, Any]) -> bool:
        """Return whether a point is pruned after a worker's report on it."""
        unit = self._add_validations(tune_id, report)
        unit.reason = unit.reason or self.listener.pointless(unit)
        return bool(unit.reason)

    def reported(self, tune_id: str, report: dict[str, Any]) -> None:
        unit = self._add_validations(tune_id, report)
        unit.steps |= report["steps"]
        unit.begun = report["begun"]
        super().reported(tune_id, report)
        if not unit.open_trials and unit.validations:
            self._rungs.ended(unit.point.key, unit.validations[max(unit.validations)])

    def _add_validations(self, tune_id: str, report: dict[str, Any]) -> PointUnit:
        unit = self.running_units[tune_id][1]
        assert isinstance(unit, PointUnit)
        for step, value in report["validations"]:
            if step not in unit.validations:
                unit.validations[step] = value
                if not self._rungs.continues(unit.point.key, step, value) and not unit.point.to_the_end:
                    unit.reason = unit.reason or f"behind others at step {step:,}"
        return unit

    def ended(self, tune_id: str, error: bool) -> None:
        unit = self.running_units[tune_id][1]
        assert isinstance(unit, PointUnit)
        super().ended(tune_id, error)
        if not error or not unit.open_trials:
            try:
                self.listener.ended(unit, pruned=bool(unit.open_trials))
            except OrchError as store_error:
                self.error = store_error


class Pruning(FIFOScheduler):
    """Lets Tune stop the points that the run prunes."""

    def __init__(self, run_id: str):
        initialise: Any = super().__init__  # Ray gives it no types
        initialise()
        self._run_id = run_id

    def on_trial_result(self, controller: Any, trial: Any, result: dict[str, Any]) -> str:
        state = driver.RUNS[self._run_id]
        assert isinstance(state, PointsRun)
        pruned = trial.trial_id in state.running_units and state.is_pruned(trial.trial_id, result)
        return TrialScheduler.STOP if pruned else TrialScheduler.CONTINUE


class PointWorker(driver.Worker):
    """A worker process that trains points."""

    def open(self, request: Any) -> Any:
        return PointRun(request)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.cleanup()  # a pruned point is checkpointed, so that another worker can continue it
        return super().reset_config(new_config)
