"""Reports on searches, read from the store alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from orch.core.counted import counted
from orch.core.errors import OrchError
from orch.search.history import History, Point, PointResult, PointState, recorded_searches, searches_with_code
from orch.search.run import make_strategy
from orch.search.smallest import Smallest, StrategyComparison, compare
from orch.search.space import describe_point
from orch.search.spec import SearchSpec
from orch.store import Store


@dataclass(frozen=True, slots=True)
class SmallestAnswer:
    """The answer to `smallest`: the value found, the one below it, and what other strategies would have cost."""

    name: str
    found: PointResult | None
    below: PointResult | None
    """The best point of the next smaller value."""
    out_of_order: list[PointResult]
    """Finished points of larger values that miss the level, although a smaller value reaches it."""
    settled: bool
    """Whether the value below was trained to the end, or does not exist."""
    comparison: StrategyComparison


@dataclass(frozen=True, slots=True)
class SearchReport:
    """The question of a search, its points and their results."""

    search_id: str
    question: SearchSpec
    results: list[PointResult]
    under_way: list[Point]
    spent: int
    """Training steps, including those of pruned points."""
    answer: SmallestAnswer | None

    @property
    def best_first(self) -> list[PointResult]:
        """Finished points by the objective, then pruned ones by their training steps and validation accuracy."""
        sign = -1.0 if self.question.objective.maximised else 1.0

        def order(result: PointResult) -> tuple[bool, float, int, float]:
            if result.value is not None:
                return False, sign * result.value, 0, 0.0
            return True, 0.0, -result.num_steps, math.inf if result.validation is None else -result.validation

        return sorted(self.results, key=order)

    def rows(self, most: int) -> list[dict[str, Any]]:
        """Return the best points as rows of a table."""
        found = []
        for result in self.best_first[:most]:
            settings = {name.replace("_", " "): _plain(value) for name, value in result.params.items()}
            found.append(
                settings
                | {
                    self.question.objective.description: _plain(result.value),
                    f"at {self.test_length}": _plain(result.test),
                    "validation": _plain(result.validation),
                    "steps": result.num_steps,
                    "state": f"{result.state}: {result.message}" if result.message else str(result.state),
                }
            )
        return found

    @property
    def test_length(self) -> int:
        return self.question.example.test_length

    def to_dict(self) -> dict[str, Any]:
        answer = None
        if self.answer is not None:
            answer = {
                "setting": self.answer.name,
                "value": None if self.answer.found is None else self.answer.found.params[self.answer.name],
                "settled": self.answer.settled,
                "training_steps": {"search": self.spent, **asdict(self.answer.comparison)},
            }
        return {
            "search": self.search_id,
            "question": self.question.to_dict(),
            "training_steps": self.spent,
            "under_way": [point.params for point in self.under_way],
            "points": [asdict(result) for result in self.results],
            "answer": answer,
        }

    def conclusion(self) -> list[str]:
        """Return sentences that state the answer and the training steps it took."""
        objective = self.question.objective
        if self.answer is None:
            best = next((result for result in self.best_first if result.value is not None), None)
            found = [] if best is None else [f"best: {describe_point(best.params)}: {self._scores(best)}"]
            return [*found, f"{self.spent:,} training steps spent, pruned points included"]
        answer, level = self.answer, self.question.smallest
        assert level is not None
        name = answer.name.replace("_", " ")
        wanted = f"{objective.description} of at least {level.at_least:g}"
        lines = []
        if answer.found is None:
            lines.append(f"no {name} of the list has a {wanted}")
        else:
            lines.append(f"smallest {name} with a {wanted}: {_plain(answer.found.params[answer.name])}")
            lines.append(f"  {describe_point(answer.found.params)}: {self._scores(answer.found)}")
        if answer.below is not None:
            lines.append(f"  {describe_point(answer.below.params)}: {self._scores(answer.below)}")
        if answer.out_of_order:
            values = ", ".join(describe_point(result.params) for result in answer.out_of_order)
            lines.append(f"  the list is not in order: larger, and trained to the end, but below the level: {values}")
        if not answer.settled:
            lines.append("  not settled yet: repeat the command to continue")
        other, assumed = answer.comparison, ""
        if other.num_assumed:
            assumed = (
                f" ({counted(other.num_assumed, 'value')} not trained to the end, counted like the nearest on the same"
                " side of the answer that was, else with all their steps)"
            )
        lines.append(
            f"training steps: {self.spent:,} for this search; {other.full_grid:,} for the full grid,"
            f" {other.bisection:,} for plain bisection{assumed}"
        )
        return lines

    def _scores(self, result: PointResult) -> str:
        if result.value is None:
            validation = "" if result.validation is None else f" at validation accuracy {result.validation:.3f}"
            return f"{result.state}{validation}"
        objective = self.question.objective.description
        test = "not measured" if result.test is None else f"{result.test:.3f}"
        return f"{objective} {result.value:.3f}; at {self.test_length} inputs {test}"


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def read_searches(store: Store, name: str | None = None) -> list[SearchReport]:
    """Return a report on every search in the store, the oldest first, or on those whose id begins with `name`.

    Searches of user-defined models or tasks are reported only by name: their code is run.
    """
    searches = recorded_searches(store, name)
    if not searches and not searches_with_code(store):
        raise OrchError(f"there is no search on {store.location}: start one with orch search, or name another --store")
    return [read_search(store, question, points, search_id) for search_id, (question, points) in searches.items()]


def read_search(store: Store, question: SearchSpec, num_points: int, search_id: str | None = None) -> SearchReport:
    """Return a report on one search."""
    history = History(store, search_id or question.id, question.space)
    results = history.results
    strategy = make_strategy(question, num_points)
    answer = _answer(store, question, strategy, results) if isinstance(strategy, Smallest) else None
    return SearchReport(history.search_id, question, results, history.under_way, history.spent, answer)


def _answer(store: Store, question: SearchSpec, strategy: Smallest, results: Sequence[PointResult]) -> SmallestAnswer:
    known = strategy.bracket(results)
    found = strategy.answer(results)
    place = known.reaching
    below = [each for each in results if place > 0 and each.params[strategy.name] == strategy.values[place - 1]]
    best_below = max(below, key=lambda each: -math.inf if each.value is None else each.value, default=None)
    steps = {
        place: round(strategy.points_at[place] * mean)
        for place, mean in _mean_steps(store, question, strategy, results).items()
    }
    budgets = question.most_steps * question.num_seeds * max(strategy.points_at)
    comparison = compare(strategy, steps, budgets, place)
    return SmallestAnswer(
        strategy.name, found, best_below, _out_of_order(strategy, results), strategy.is_settled(results), comparison
    )


def _out_of_order(strategy: Smallest, results: Sequence[PointResult]) -> list[PointResult]:
    """Return the finished points of larger values that miss the level, which contradict the order of the list."""
    place = strategy.bracket(results).reaching
    reaching = {strategy.place(each.params) for each in results if strategy.reaches(each)}
    finished = [each for each in results if each.state is PointState.FINISHED]
    return [
        each for each in finished if strategy.place(each.params) > place and strategy.place(each.params) not in reaching
    ]


def _mean_steps(
    store: Store, question: SearchSpec, strategy: Smallest, results: Sequence[PointResult]
) -> Mapping[int, float]:
    """Return the mean training steps of a point, by the place of its value, for values trained to the end.

    If nothing else is varied, results of other sweeps and searches count too.
    """
    found: dict[int, list[int]] = {}
    for each in results:
        if each.state is PointState.FINISHED:
            found.setdefault(strategy.place(each.params), []).append(each.num_steps)
    if len(question.space.dimensions) == 1:
        rows = store.read("trials", ("trial_id", "steps_trained"))
        trained = dict(zip(rows["trial_id"].to_pylist(), rows["steps_trained"].to_pylist(), strict=True))
        for place, value in enumerate(strategy.values):
            ids = [trial.id for trial in question.trials({strategy.name: value})]
            if place not in found and all(trial_id in trained for trial_id in ids):
                found[place] = [sum(trained[trial_id] for trial_id in ids)]
    return {place: sum(steps) / len(steps) for place, steps in found.items()}
