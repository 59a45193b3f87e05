"""The part of a search that is Ray Tune's: OptunaSearch proposes, ASHA compares, the driver's workers train.

The sampler is made anew for every question it is asked, from the history alone, so that a search that was killed goes
on as if it had not been.
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
from orch.running.units import Work
from orch.running.worker import Unit
from orch.search.history import Point, PointState, Told
from orch.search.point_run import PointRun
from orch.search.points import Points, PointWork
from orch.search.space import Dimension, Params, Space, Value
from orch.search.spec import REDUCTION, SearchSpec


def suggest(
    question: SearchSpec, told: Sequence[Told], under_way: Sequence[Point], fixed: Mapping[str, Value], turn: int
) -> Params:
    """A point with these values, the others by Optuna's tree of Parzen estimators. `turn` tells apart the proposals
    made of one history: they may be points that it knows."""
    space = question.space
    digest = hashlib.sha256(f"{question.sampler_seed} {len(told)} {len(under_way)} {turn}".encode()).digest()
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
    for each in told:
        _tell(search, space, each)
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


def _tell(search: OptunaSearch, space: Space, told: Told) -> None:
    params = _to_sampler(space, told.params)
    if told.state is PointState.FINISHED and told.value is not None:
        search.add_evaluated_point(params, told.value)
    elif told.state is PointState.PRUNED and told.validation is not None:
        values = [value for _, value in told.rungs]
        search.add_evaluated_point(params, told.validation, pruned=True, intermediate_values=values)
    else:
        search.add_evaluated_point(params, 0.0, error=True)


def _distribution(dimension: Dimension) -> BaseDistribution:
    """A list of numbers in order is its places, so that the sampler knows which values are neighbours."""
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
    return dimension.values[value] if dimension.is_ordered else value


class Rungs:
    """ASHA's memory of what points scored at equal steps, and its verdict."""

    def __init__(self, rungs: Sequence[int], most_steps: int):
        self.steps = tuple(rungs)
        self._judge = ASHAScheduler(
            time_attr="step",
            metric="validation",
            mode="max",
            max_t=most_steps,
            grace_period=rungs[0] if rungs else most_steps,
            reduction_factor=REDUCTION,
            stop_last_trials=False,
        )
        self._seen: set[str] = set()

    def goes_on(self, key: str, step: int, value: float) -> bool:
        """Whether a point that scores this at that step is among those that go on. Scores are remembered, the first of
        a point at each rung."""
        if not self.steps:
            return True
        nobody: Any = None
        trial: Any = SimpleNamespace(trial_id=key)
        if key not in self._seen:
            self._seen.add(key)
            self._judge.on_trial_add(nobody, trial)
        verdict = self._judge.on_trial_result(nobody, trial, {"step": step, "validation": value})
        return verdict != TrialScheduler.STOP

    def ended(self, key: str, value: float) -> None:
        """A point that has ended before a rung is compared there as it ended."""
        for step in self.steps:
            self.goes_on(key, step, value)


class PointsRun(driver.Run):
    """Hands out points where a sweep hands out packs, and prunes them."""

    listener: Points

    def __init__(
        self, question: SearchSpec, rungs: Rungs, options: driver.RunOptions, machines: Machines, points: Points
    ):
        super().__init__(deque(), options, machines, points)
        self._question, self._rungs = question, rungs

    @property
    def exhausted(self) -> bool:
        return not self.queue and self.listener.nothing_left()

    def next_work(self) -> Work | None:
        try:
            return self.queue.popleft() if self.queue else self.listener.next_point()
        except OrchError as lost:
            self.broken = lost
            return None

    def unit(self, work: Work) -> Unit:
        assert isinstance(work, PointWork)
        objective = self._question.objective
        more = {
            "objective": {"metric": objective.metric, "aggregate": objective.aggregate},
            "known": work.known,
            "rungs": self._rungs.steps,
            "told_path": work.told_path,
        }
        unit: Any = {**super().unit(work), **more}
        return unit

    def pieces(self, work: Work) -> list[Work]:
        return [work] if worth_another_try(work.history) else []

    def is_pruned(self, tune_id: str, result: dict[str, Any]) -> bool:
        work = self._take_note(tune_id, result)
        work.reason = work.reason or self.listener.pointless(work)
        return bool(work.reason)

    def reported(self, tune_id: str, result: dict[str, Any]) -> None:
        work = self._take_note(tune_id, result)
        work.steps |= result["steps"]
        work.begun = result["begun"]
        super().reported(tune_id, result)
        if not work.open_trials and work.validations:
            self._rungs.ended(work.point.key, work.validations[max(work.validations)])

    def _take_note(self, tune_id: str, result: dict[str, Any]) -> PointWork:
        work = self.flying[tune_id][1]
        assert isinstance(work, PointWork)
        for step, value in result["validations"]:
            if step not in work.validations:
                work.validations[step] = value
                if not self._rungs.goes_on(work.point.key, step, value) and not work.point.to_the_end:
                    work.reason = work.reason or f"behind others at step {step:,}"
        return work

    def ended(self, tune_id: str, error: bool) -> None:
        work = self.flying[tune_id][1]
        assert isinstance(work, PointWork)
        super().ended(tune_id, error)
        if not error or not work.open_trials:
            try:
                self.listener.ended(work, pruned=bool(work.open_trials))
            except OrchError as lost:
                self.broken = lost


class _Pruning(FIFOScheduler):
    def __init__(self, run_id: str):
        super().__init__()
        self._run_id = run_id

    def on_trial_result(self, controller: Any, trial: Any, result: dict[str, Any]) -> str:
        state = driver.RUNS[self._run_id]
        assert isinstance(state, PointsRun)
        pruned = trial.trial_id in state.flying and state.is_pruned(trial.trial_id, result)
        return TrialScheduler.STOP if pruned else TrialScheduler.CONTINUE


class PointWorker(driver.Worker):
    def open(self, unit: Any) -> Any:
        return PointRun(unit)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.cleanup()  # a point that was pruned is left as another worker can take it up
        return super().reset_config(new_config)


def run(question: SearchSpec, rungs: Rungs, options: driver.RunOptions, machines: Machines, points: Points) -> None:
    """Train points until there are no more or the listener says stop."""
    state = PointsRun(question, rungs, options, machines, points)
    driver.fit(state, PointWorker, _Pruning(options.driver_id))
