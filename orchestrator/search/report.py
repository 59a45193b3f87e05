"""What a search has found, from the store alone."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from orch.core.errors import OrchError
from orch.search.history import History, Point, PointState, Told, recorded_searches
from orch.search.run import make_strategy
from orch.search.smallest import Smallest, StrategyComparison, compare
from orch.search.space import describe_point
from orch.search.spec import SearchSpec
from orch.store import Store


@dataclass(frozen=True, slots=True)
class SmallestAnswer:
    """To `smallest`: the value found, the one below it, and what other ways would have cost."""

    name: str
    found: Told | None
    below: Told | None
    """The best point of the next smaller value."""
    out_of_order: list[Told]
    """Points of larger values that miss the level all the same."""
    settled: bool
    """Whether the value below was trained to the end, or there is none."""
    comparison: StrategyComparison


@dataclass(frozen=True, slots=True)
class SearchReport:
    search_id: str
    question: SearchSpec
    told: list[Told]
    under_way: list[Point]
    spent: int
    """Training steps, of pruned points too."""
    answer: SmallestAnswer | None

    @property
    def best_first(self) -> list[Told]:
        """Finished points by the objective, then pruned ones by how far they came and how well."""
        sign = -1.0 if self.question.objective.maximised else 1.0

        def order(told: Told) -> tuple[bool, float, int, float]:
            if told.value is not None:
                return False, sign * told.value, 0, 0.0
            return True, 0.0, -told.num_steps, -(told.validation or 0.0)

        return sorted(self.told, key=order)

    def rows(self, most: int) -> list[dict[str, Any]]:
        """For a table."""
        found = []
        for told in self.best_first[:most]:
            settings = {name.replace("_", " "): _plain(value) for name, value in told.params.items()}
            found.append(
                settings
                | {
                    self.question.objective.description: _plain(told.value),
                    f"at {self.test_length}": _plain(told.test),
                    "validation": _plain(told.validation),
                    "steps": told.num_steps,
                    "state": f"{told.state}: {told.message}" if told.message else str(told.state),
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
            "points": [asdict(told) for told in self.told],
            "answer": answer,
        }

    def conclusion(self) -> list[str]:
        """Sentences for people: the answer, if one was asked for, and what it took."""
        objective = self.question.objective
        if self.answer is None:
            best = next((told for told in self.best_first if told.value is not None), None)
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
            values = ", ".join(describe_point(told.params) for told in answer.out_of_order)
            lines.append(f"  the list is not in order: larger, and trained to the end, but below the level: {values}")
        if not answer.settled:
            lines.append("  not settled yet: repeat the command to go on")
        other, assumed = answer.comparison, ""
        if other.num_assumed:
            assumed = (
                f" ({other.num_assumed} values not trained to the end, counted like the nearest on the same side of the"
                " answer that was, else with all their steps)"
            )
        lines.append(
            f"training steps: {self.spent:,} for this search; {other.full_grid:,} for the full grid,"
            f" {other.bisection:,} for plain bisection{assumed}"
        )
        return lines

    def _scores(self, told: Told) -> str:
        if told.value is None:
            validation = "" if told.validation is None else f" at validation accuracy {told.validation:.3f}"
            return f"{told.state}{validation}"
        return f"{self.question.objective.description} {told.value:.3f}; at {self.test_length} inputs {told.test:.3f}"


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def read_searches(store: Store, name: str | None = None) -> list[SearchReport]:
    """Every search in the store, the oldest first, or those whose id begins like this."""
    searches = recorded_searches(store, name)
    if not searches:
        raise OrchError(f"there is no search on {store.location}: start one with orch search, or name another --store")
    return [read_search(store, question, points, search_id) for search_id, (question, points) in searches.items()]


def read_search(store: Store, question: SearchSpec, num_points: int, search_id: str | None = None) -> SearchReport:
    history = History(store, search_id or question.id)
    told = history.told
    strategy = make_strategy(question, num_points)
    answer = _answer(store, question, strategy, told) if isinstance(strategy, Smallest) else None
    return SearchReport(history.search_id, question, told, history.under_way, history.spent, answer)


def _answer(store: Store, question: SearchSpec, strategy: Smallest, told: Sequence[Told]) -> SmallestAnswer:
    known = strategy.bracket(told)
    found = strategy.answer(told)
    place = known.reaching
    below = [each for each in told if place > 0 and each.params[strategy.name] == strategy.values[place - 1]]
    best_below = max(below, key=lambda each: (each.value is not None, each.value or 0.0), default=None)
    steps = {
        place: round(strategy.points_at[place] * mean)
        for place, mean in _mean_steps(store, question, strategy, told).items()
    }
    budgets = question.most_steps * question.num_seeds * max(strategy.points_at)
    comparison = compare(strategy, steps, budgets, place)
    return SmallestAnswer(
        strategy.name, found, best_below, _out_of_order(strategy, told), strategy.is_settled(told), comparison
    )


def _out_of_order(strategy: Smallest, told: Sequence[Told]) -> list[Told]:
    """What contradicts the order that the search goes by: finished points of larger values, none of which reach it."""
    place = strategy.bracket(told).reaching
    reaching = {strategy.place(each.params) for each in told if strategy.reaches(each)}
    finished = [each for each in told if each.state is PointState.FINISHED]
    return [
        each for each in finished if strategy.place(each.params) > place and strategy.place(each.params) not in reaching
    ]


def _mean_steps(store: Store, question: SearchSpec, strategy: Smallest, told: Sequence[Told]) -> Mapping[int, float]:
    """Of values that were trained to the end, by this search or, where nothing else is varied, by anyone."""
    found: dict[int, list[int]] = {}
    for each in told:
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
