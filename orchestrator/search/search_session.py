"""One run of a search: hands out points, hears what becomes of them, and remembers it in the store."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from orch.core.errors import OrchError
from orch.running.failures import Failure
from orch.running.lease import Lease
from orch.running.progress import Display, Progress, ProgressCount
from orch.running.session import Options, Session, compacting, interruptible
from orch.running.units import Turn, Work
from orch.search.history import History, Point, PointState, Told
from orch.search.objective import COLUMNS
from orch.search.points import PointWork
from orch.search.space import Params, describe_point
from orch.search.spec import SearchSpec
from orch.search.strategy import Ask, Strategy
from orch.search.validations import at_rungs, combined
from orch.store import Store

MOST_PROPOSALS = 50
"""A sampler that proposes nothing but known points this often has nothing new."""


@dataclass
class SearchSummary:
    """What a run of a search came to."""

    told: int
    failed: int
    seconds: float
    stopped: str
    """Why it stopped before everything was told; empty if it did not."""


class _Progress(Progress):
    """A search's: points, the best of them, and the steps spent."""

    spent: int = 0
    num_pruned: int = 0

    def line(self) -> str:
        (tally,) = self.tallies.values()
        parts = [f"{tally.done:,} of at most {tally.total:,} points", f"{tally.running} running"]
        parts += [f"{self.num_pruned} pruned"] * bool(self.num_pruned)
        parts += [f"{tally.failed} failed"] * bool(tally.failed)
        parts += [] if tally.best is None else [f"best {tally.best:.3f} ({tally.best_label})"]
        return ", ".join([*parts, f"{self.spent:,} steps"])


class SearchSession(Session):
    """The driver's listener, in whose process it lives."""

    def __init__(
        self,
        question: SearchSpec,
        strategy: Strategy,
        history: History,
        store: Store,
        machines: Any,
        lease: Lease,
        options: Options,
    ):
        from orch.search import tuning

        super().__init__(store, machines, lease, options)
        self._question, self._strategy, self._history = question, strategy, history
        self._suggest = tuning.suggest
        self._rungs = tuning.Rungs(question.rungs, question.most_steps)
        self._barren = False
        self._num_told = 0
        self._restarted = {point.name for point in history.under_way}
        self._again = [*history.under_way]
        for told in history.told:
            for step, value in told.rungs:
                if step in self._rungs.steps:
                    self._rungs.goes_on(told.key, step, value)
            if told.state is PointState.FAILED and told.key not in {point.key for point in self._again}:
                self._again.append(Point(self._history.num_asked + 1, told.params))
                self._history.ask(self._again[-1])
        self._flying: dict[str, Point] = {}
        self._progress = _Progress({question.id: ProgressCount(total=strategy.num_points)}, 0.0)
        self._display = Display(self._progress, quiet=options.quiet)
        self._show_counts()

    def run(self) -> SearchSummary:
        from orch.search import tuning

        self.log.event("search started", search=self._question.id, machines=self._machines.description)
        with interruptible(self.interrupt), compacting(self._store, self.log), self._display:
            tuning.run(self._question, self._rungs, self.run_options(), self._machines, self)
        failed = sum(told.state is PointState.FAILED for told in self._history.told)
        self.log.event("search ended", told=self._num_told, failed=failed, stopped=self._stopped)
        return SearchSummary(self._num_told, failed, 0.0, self._stopped)

    # Where points come from.

    def next_point(self) -> PointWork | None:
        while (point := self._next()) is not None:
            try:
                trials = self._question.trials(point.params)
            except OrchError as error:
                message = "; ".join(str(error).splitlines())
                self._history.tell(point, Told(point.number, point.params, PointState.INVALID, message=message))
                self._say(f"{describe_point(point.params)}: left out: {message}")
                continue
            rows = self._rows({trial.id for trial in trials})
            if point.name not in self._restarted:
                point = replace(point, found=tuple(sorted(rows)))
                self._history.ask(point)
            work = PointWork(trials, finished=set(rows), point=point, told_path=self._history.told_path(point))
            work.known = self._curves(set(rows))
            if work.open_trials:
                self._flying[point.name] = point
                return work
            work.validations = dict(combined(list(work.known.values()), self._question.objective))
            if work.validations:
                self._rungs.ended(point.key, work.validations[max(work.validations)])
            self.ended(work, pruned=False)
        return None

    def _next(self) -> Point | None:
        """A point that was under way when the search was stopped, or a new one."""
        if self._again:
            return self._again.pop(0)
        ask = self._ask()
        params = None if ask is None else self._choose(ask)
        self._barren = ask is not None and params is None
        if ask is None or params is None:
            return None
        return Point(self._history.num_asked + 1, params, ask.to_the_end)

    def _ask(self) -> Ask | None:
        flying = {point.key for point in self._history.under_way}
        told = [each for each in self._history.told if each.state is not PointState.FAILED or each.key not in flying]
        return self._strategy.next(told, self._history.under_way)

    def _choose(self, ask: Ask) -> Params | None:
        if ask.to_the_end:
            return ask.fixed
        told, under_way = self._history.told, self._history.under_way
        taken = {each.key for each in told} | {point.key for point in under_way}
        for turn in range(MOST_PROPOSALS):
            params = self._suggest(self._question, told, under_way, ask.fixed, turn)
            if Point(0, params).key not in taken:
                return params
        if self._question.space.is_finite:
            rest = (params for params in self._question.space.points(ask.fixed) if Point(0, params).key not in taken)
            return next(rest, None)
        return None

    def nothing_left(self) -> bool:
        return self._barren or (not self._again and self._ask() is None)

    def pointless(self, work: PointWork) -> str:
        return self._strategy.pointless(work.point, self._history.told)

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

    # What became of them.

    def ended(self, work: PointWork, pruned: bool) -> None:
        rows = self._rows({trial.id for trial in work.trials})
        steps = work.steps | {trial_id: row["steps_trained"] for trial_id, row in rows.items()}
        value = test = None
        if not pruned:
            in_order = [rows[trial.id] for trial in work.trials]
            value, test = self._question.objective.value(in_order), self._question.objective.test(in_order)
        state = PointState.PRUNED if pruned else PointState.FINISHED
        rungs = at_rungs(work.validations, self._rungs.steps, has_ended=not pruned)
        self._tell(work, state, value=value, test=test, steps=steps, rungs=rungs, message=work.reason if pruned else "")

    def _tell(self, work: PointWork, state: PointState, **facts: Any) -> None:
        point = work.point
        told = Told(point.number, point.params, state, spent=self._spent(work, facts.get("steps", {})), **facts)
        self._history.tell(point, told)
        self._num_told += 1
        self._flying.pop(point.name, None)
        self._lease.release([trial.id for trial in work.trials])
        self._show_counts()
        self.log.event("point told", point=point.name, state=str(state), value=told.value, spent=told.spent)
        score = "" if told.value is None else f" {told.value:.3f}"
        why = f" ({told.message})" if told.message else ""
        self._say(f"{describe_point(point.params)}: {state}{score}{why}, {told.spent:,} steps")

    def _spent(self, work: PointWork, steps: dict[str, int]) -> int:
        """Steps of this search's own: not those of results that were there, nor those told of the point before."""
        before: dict[str, int] = {}
        for told in self._history.every_word:
            if told.key == work.point.key and told.number < work.point.number:
                before |= told.steps
        if not before and work.point.name not in self._restarted:
            before = work.begun
        return sum(
            max(0, step - before.get(trial_id, 0))
            for trial_id, step in steps.items()
            if trial_id not in work.point.found
        )

    # The driver's listener.

    def started(self, work: Work) -> None:
        self._lease.claim([trial.id for trial in work.open_trials])
        self._show_counts()
        self.log.event("point started", trials=[trial.id for trial in work.open_trials])

    def finished(self, work: Work, summary: dict[str, Any]) -> None:
        self.log.event("trial finished", **summary)

    def failed(self, work: Work, failure: Failure, again: bool) -> None:
        assert isinstance(work, PointWork)
        self.log.event("point failed", point=work.point.name, signature=failure.signature, again=again)
        if not again and not self._stopped and not failure.store_lost:
            try:
                self._tell(work, PointState.FAILED, steps=work.steps, message=failure.message)
            except OrchError as error:
                self._stopped = str(error)

    def tick(self, running: Sequence[Work], num_waiting: int) -> None:
        self.heed_time()
        self.log.flush()
        under_way = sum(self._spent(work, work.steps) for work in running if isinstance(work, PointWork))
        self._progress.spent = self._history.spent + under_way
        self._display.show()

    def turn(self, work: Work) -> Turn:
        return Turn.NOW

    def _say(self, text: str) -> None:
        self._display.say(text)

    def _show_counts(self) -> None:
        told = self._history.told
        (tally,) = self._progress.tallies.values()
        tally.done = sum(each.state in (PointState.FINISHED, PointState.PRUNED) for each in told)
        tally.failed = sum(each.state is PointState.FAILED for each in told)
        tally.running = len(self._flying)
        self._progress.num_pruned = sum(each.state is PointState.PRUNED for each in told)
        self._progress.spent = self._history.spent
        for each in told:
            objective = self._question.objective
            if each.value is not None and (tally.best is None or objective.better(each.value, tally.best)):
                tally.best, tally.best_label = each.value, describe_point(each.params)
