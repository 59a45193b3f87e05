"""Proposals and verdicts: Optuna and ASHA as a search uses them, without starting Ray."""

from orch.search.history import Point, PointResult, PointState
from orch.search.space import parse_space
from orch.search.spec import SearchSpec
from orch.search.tuning import Rungs, suggest

SPACE = parse_space(
    ["rank=1,2,4,8", "learning_rate=1e-4..1e-2", "additive=none,input"], "state_machine", "factored", {}
)
QUESTION = SearchSpec(task="state_machine", model="factored", fixed={"width": 8}, space=SPACE)


def told(number, rank, value, state=PointState.FINISHED):
    params = {"rank": rank, "learning_rate": 1e-3, "additive": "none"}
    return PointResult(number, params, state, value=value, rungs=[(10, 0.3)])


HISTORY = [told(1, 8, 0.9), told(2, 1, None, PointState.PRUNED), told(3, 2, None, PointState.FAILED)]
FLYING = [Point(4, {"rank": 4, "learning_rate": 2e-3, "additive": "input"})]


def test_a_proposal_is_a_point_of_the_space():
    for turn in range(10):
        params = suggest(QUESTION, HISTORY, FLYING, {}, turn)
        assert params["rank"] in (1, 2, 4, 8)
        assert 1e-4 <= params["learning_rate"] <= 1e-2
        assert params["additive"] in ("none", "input")


def test_the_same_history_has_the_same_proposal_and_turns_differ():
    first = [suggest(QUESTION, HISTORY, FLYING, {}, turn) for turn in range(5)]
    assert first == [suggest(QUESTION, HISTORY, FLYING, {}, turn) for turn in range(5)]
    assert len({str(params) for params in first}) == 5


def test_settings_that_must_be_so_are_and_the_sampler_chooses_the_others():
    assert suggest(QUESTION, HISTORY, FLYING, {"rank": 2}, 0)["rank"] == 2
    whole = {"rank": 2, "learning_rate": 3e-3, "additive": "input"}
    assert suggest(QUESTION, [], [], whole, 0) == whole


def test_the_sampler_learns_from_what_it_was_pruned():
    words = [told(number, rank, 1.0 if rank == 8 else 0.0) for number, rank in enumerate([1, 2, 4, 8] * 8)]
    ranks = [suggest(QUESTION, words, [], {}, turn)["rank"] for turn in range(20)]
    assert ranks.count(8) > 10


def test_a_point_behind_others_at_equal_steps_does_not_go_on():
    rungs = Rungs((100, 300), 900)
    assert rungs.continues("first", 100, 0.5)
    assert not rungs.continues("second", 100, 0.4)
    assert rungs.continues("third", 100, 0.6)
    assert rungs.continues("third", 200, 0.1), "points are compared only at rungs"
    assert rungs.continues("third", 300, 0.1), "the first point at a rung has nothing to be compared with"


def test_a_score_counts_once_however_often_it_is_told():
    rungs = Rungs((100,), 900)
    for _ in range(5):
        assert rungs.continues("first", 100, 0.9)
    rungs.continues("second", 100, 0.1)
    assert rungs.continues("third", 100, 0.7), "two scores count, not six"


def test_a_point_that_ended_early_is_compared_at_later_rungs_as_it_ended():
    rungs = Rungs((100, 300), 900)
    rungs.continues("early", 100, 0.9)
    rungs.ended("early", 1.0)
    assert not rungs.continues("late", 300, 0.9)


def test_without_rungs_every_point_continues():
    rungs = Rungs((), 900)
    assert rungs.continues("first", 100, 0.9)
    assert rungs.continues("second", 100, 0.1)
