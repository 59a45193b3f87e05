"""The record of a search in the store."""

import pytest

from orch.core.errors import OrchError
from orch.search.chart import draw
from orch.search.history import History, Point, PointResult, PointState, record_question, recorded_searches
from orch.search.space import parse_space
from orch.search.spec import SearchSpec
from orch.store import Store


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")


def told(point, state=PointState.FINISHED, **facts):
    return PointResult(point.number, point.params, state, **facts)


def test_what_was_pruned_is_read_back_and_what_was_not_is_under_way(store):
    history = History(store, "abc")
    first, second = Point(1, {"rank": 4}, found=("t1",)), Point(2, {"rank": 8}, to_the_end=True)
    history.record_point(first)
    history.record_point(second)
    word = told(first, value=0.5, test=0.25, steps={"t1": 10, "t2": 20}, spent=20, rungs=[(10, 0.1), (20, 0.5)])
    history.record_result(first, word)
    again = History(store, "abc")
    assert again.results == [word]
    assert again.under_way == [second]
    assert (again.last_number, again.spent) == (2, 20)
    assert History(store, "other").results == []


def test_of_a_point_that_was_asked_again_the_last_word_counts_and_all_its_steps(store):
    history = History(store, "abc")
    for number, state, spent in ((1, PointState.PRUNED, 30), (2, PointState.FINISHED, 70)):
        point = Point(number, {"rank": 4})
        history.record_point(point)
        history.record_result(point, told(point, state, spent=spent))
    assert [each.state for each in history.results] == [PointState.FINISHED]
    assert history.spent == 100


def test_searches_are_found_by_the_beginning_of_their_id(store):
    space = parse_space(["rank=1,2"], "dihedral", "factored", {})
    question = SearchSpec(task="dihedral", model="factored", fixed={}, space=space)
    record_question(store, question, 5)
    assert recorded_searches(store, question.id[:4]) == {question.id: (question, 5)}
    with pytest.raises(OrchError, match="--show lists all"):
        recorded_searches(store, "nothing")


def test_the_chart_has_a_mark_for_each_point_at_its_height():
    words = [
        PointResult(1, {"rank": 1}, PointState.FINISHED, value=1.0),
        PointResult(2, {"rank": 2}, PointState.PRUNED, rungs=[(10, 0.0)]),
        PointResult(3, {"rank": 3}, PointState.INVALID),
        PointResult(4, {"rank": 4}, PointState.FAILED),
    ]
    title, top, *_, bottom, _axis, legend = draw(words, "title")
    assert title == "title"
    assert top == "1 ┤ ●"
    assert bottom == "0 ┤   ○ ×"
    assert "failed" in legend


def test_a_chart_of_nothing_is_empty():
    assert draw([], "title") == []
