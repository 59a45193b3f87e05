"""`orch search` as far as it goes without training."""

import json

import pytest
from click.testing import CliRunner

from orch.cli import main
from orch.search.history import History, Point, PointResult, PointState, record_question
from orch.search.objective import Objective
from orch.search.space import parse_space
from orch.search.spec import Level, SearchSpec
from orch.store import Store

FACTORED = ("--model", "factored", "--task", "state_machine", "--width", "16")


@pytest.fixture
def location(tmp_path):
    return str(tmp_path / "runs")


def orch(location, *arguments, expect=0):
    result = CliRunner().invoke(main, ["search", *arguments], env={"ORCH_STORE": location})
    assert result.exit_code == expect, result.output
    return result


@pytest.fixture
def search_id(location):
    """Return a store with a finished search for the smallest rank."""
    store = Store.open(location)
    space = parse_space(["rank=1,2,4,8"], "state_machine", "factored", {})
    question = SearchSpec(
        task="state_machine",
        model="factored",
        fixed={"width": 16, "steps": 900},
        space=space,
        num_seeds=2,
        objective=Objective(aggregate="median"),
        smallest=Level("rank", 0.95),
    )
    record_question(store, question, 1)
    history = History(store, question.id)
    facts = [
        (2, PointState.FINISHED, {"value": 0.5, "test": 0.25, "steps": {"a": 900, "b": 900}, "spent": 1800}),
        (4, PointState.FINISHED, {"value": 1.0, "test": 0.75, "steps": {"c": 300, "d": 500}, "spent": 800}),
        (8, PointState.PRUNED, {"rungs": [(100, 0.1)], "steps": {"e": 100}, "spent": 100, "message": "behind others"}),
    ]
    for number, (rank, state, more) in enumerate(facts, start=1):
        point = Point(number, {"rank": rank})
        history.record_point(point)
        history.record_result(point, PointResult(number, point.params, state, **more))
    return question.id


def test_all_that_cannot_be_meant_is_told_at_once(location):
    result = orch(
        location,
        *FACTORED,
        *("--vary", "rnak=1,2", "--seeds", "0", "--points", "0", "--grace", "-1", "--cpus", "0", "--top", "0"),
        *("--figure", "history.pdf"),
        expect=2,
    )
    problems = result.stderr.splitlines()
    assert len(problems) == 7
    for word in ("--top", "--figure", "--points", "did you mean 'rank'", "--cpus", "--seeds", "--grace"):
        assert any(word in problem for problem in problems)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--model and --task"),
        ([*FACTORED], "add --vary"),
        ([*FACTORED, "--vary", "rank=1,2", "--metric", "accuracy_500"], "nothing may be tuned on"),
        ([*FACTORED, "--vary", "rank=0,-1"], "leaves no factors"),
        ([*FACTORED, "--vary", "rank=1,2", "--store", "bundled"], "cannot be changed"),
        (["--show"], "there is no search"),
    ],
)
def test_bad_input_gets_one_sentence_with_a_remedy(location, arguments, message):
    result = orch(location, *arguments, expect=2)
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_show_lists_the_best_points_first_and_draws_the_history(location, search_id):
    lines = orch(location, "--show").stdout.splitlines()
    points = [line.split()[0] for line in lines if line.rstrip().endswith(("finished", "pruned: behind others"))]
    assert points == ["4", "2", "8"]
    assert any("┤" in line and "●" in line for line in lines)
    assert "smallest rank with a median accuracy at 100 inputs of at least 0.95: 4" in lines
    assert "  rank 4: median accuracy at 100 inputs 1.000; at 500 inputs 0.750" in lines
    assert "  rank 2: median accuracy at 100 inputs 0.500; at 500 inputs 0.250" in lines
    # Rank 1 is counted like rank 2, and rank 8 like rank 4.
    wanted = "training steps: 2,700 for this search; 5,200 for the full grid, 2,600 for plain bisection"
    assert any(line.startswith(wanted) for line in lines)


def test_show_as_json_is_the_whole_history(location, search_id):
    (found,) = json.loads(orch(location, "--show", search_id[:5], "--json").stdout)
    assert found["search"] == search_id
    assert [point["params"]["rank"] for point in found["points"]] == [2, 4, 8]
    assert found["answer"] == {
        "setting": "rank",
        "value": 4,
        "settled": True,
        "training_steps": {"search": 2700, "full_grid": 5200, "bisection": 2600, "num_assumed": 2},
    }


def test_the_history_is_drawn_to_a_file_the_same_each_time(location, search_id, tmp_path):
    pictures = []
    for name in ("one.svg", "two.svg"):
        orch(location, "--show", search_id, "--figure", str(tmp_path / name))
        pictures.append((tmp_path / name).read_bytes())
    assert pictures[0] == pictures[1]
    assert b"<svg" in pictures[0]
    orch(location, "--show", search_id, "--figure", str(tmp_path / "one.png"))
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
