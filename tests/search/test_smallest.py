"""The smallest value that reaches a level: which points are asked for, and what they are compared with."""

import itertools

import pytest

from orch.search.history import Point, PointResult, PointState
from orch.search.smallest import Smallest, compare

RANKS = (1, 2, 4, 8, 16, 64, 128, 256, 512, 1024, 2048)


def smallest(ranks=RANKS, points=1):
    return Smallest("rank", dict.fromkeys(ranks, points), 0.95)


def told(number, rank, state=PointState.FINISHED, value=None, **params):
    return PointResult(number, {"rank": rank, **params}, state, value=value)


def search(strategy, answer, num_workers=1, prune=lambda rank: False):
    """Play it: the points in the order they were trained, each with whether it was to the end, and the last word."""
    known: dict[int, PointResult] = {}
    flying: list[Point] = []
    asked = []
    for number in itertools.count(1):
        while len(flying) < num_workers:
            ask = strategy.next(list(known.values()), flying)
            if ask is None:
                break
            flying.append(Point(number, ask.fixed, ask.to_the_end))
            asked.append((ask.fixed["rank"], ask.to_the_end))
        if not flying:
            return asked, list(known.values())
        point = flying.pop(0)
        rank = point.params["rank"]
        if strategy.pointless(point, list(known.values())) or (prune(rank) and not point.to_the_end):
            known[rank] = told(number, rank, PointState.PRUNED)
        else:
            known[rank] = told(number, rank, value=1.0 if rank >= answer else 0.1)
    raise AssertionError


@pytest.mark.parametrize("answer", [*RANKS, 5000])
@pytest.mark.parametrize("num_workers", [1, 2, 4])
@pytest.mark.parametrize("prune", [lambda rank: False, lambda rank: rank < 64, lambda rank: True])
def test_the_answer_is_right_whatever_was_pruned_on_the_way(answer, num_workers, prune):
    strategy = smallest()
    asked, known = search(strategy, answer, num_workers, prune)
    found = strategy.answer(known)
    assert (None if found is None else found.params["rank"]) == (answer if answer in RANKS else None)
    assert strategy.is_settled(known)
    assert len(asked) <= 2 * len(RANKS)


def test_alone_and_unpruned_it_is_plain_bisection():
    asked, _ = search(smallest(), 16)
    assert [rank for rank, _ in asked] == [64, 4, 8, 16]


def test_a_pruned_value_below_the_answer_is_trained_to_the_end():
    asked, _ = search(smallest(), 64, prune=lambda rank: rank < 64)
    assert asked == [(64, False), (4, False), (8, False), (16, False), (16, True)]


def test_a_value_that_others_have_made_useless_is_given_up():
    strategy = smallest()
    known = [told(1, 64, value=1.0), told(2, 4, value=0.1)]
    assert strategy.pointless(Point(3, {"rank": 128}), known) == "rank 64 reaches the level"
    assert strategy.pointless(Point(3, {"rank": 2}), known) == "rank 4 misses the level"
    assert strategy.pointless(Point(3, {"rank": 8}), known) == ""
    pruned = [told(1, 64, value=1.0), told(2, 4, PointState.PRUNED)]
    assert strategy.pointless(Point(3, {"rank": 2}), pruned) == ""
    sure = [told(1, 4, value=0.1), told(2, 64, PointState.PRUNED)]
    assert strategy.pointless(Point(3, {"rank": 2}), sure) == "rank 4 misses the level"
    assert strategy.pointless(Point(3, {"rank": 8}), sure) == ""


def test_a_value_gets_all_its_points_before_it_counts_as_missing_the_level():
    strategy = smallest((1, 2, 4), points=2)
    first = told(1, 2, value=0.1, learning_rate=0.1)
    ask = strategy.next([first], [])
    assert ask is not None
    assert ask.fixed == {"rank": 2}
    assert strategy.next([first, told(2, 2, value=0.2, learning_rate=0.2)], []).fixed == {"rank": 4}
    assert strategy.next([first, told(2, 2, value=1.0, learning_rate=0.2)], []).fixed == {"rank": 1}


def test_an_error_settles_nothing():
    strategy = smallest((1, 2))
    known = [told(1, 1, PointState.FAILED), told(2, 2, value=1.0)]
    assert strategy.next(known, []) is None
    assert not strategy.is_settled(known)


def test_other_ways_are_counted_by_what_is_known_and_like_the_nearest_where_nothing_is():
    # Places 0 to 4, the answer at 2: place 1 took 300 steps, place 2 took 100.
    comparison = compare(smallest((1, 2, 3, 4, 5)), {1: 300, 2: 100}, budget=400, answer=2)
    assert comparison.full_grid == 300 + 300 + 100 + 100 + 100
    assert comparison.bisection == 100 + 300 + 300  # the middle, then both below it
    assert comparison.num_assumed == 3


def test_without_any_value_trained_to_the_end_the_budget_is_counted():
    assert compare(smallest((1, 2, 3)), {}, budget=400, answer=3).full_grid == 1200
