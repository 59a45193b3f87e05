"""The question of a search: its trials, its identity, and the errors in it."""

import dataclasses

from orch.search.objective import Objective
from orch.search.space import parse_space
from orch.search.spec import Level, SearchSpec
from orch.sweeps.trial import make_trial

FIXED = {"modulus": 5, "width": 16, "steps": 900, "eval_every": 100}


def question(*vary, fixed=FIXED, model="factored", **more):
    space = parse_space(vary or ["rank=1,2,4"], "state_machine", model, fixed)
    return SearchSpec(task="state_machine", model=model, fixed=fixed, space=space, **more)


def test_a_points_trials_are_those_that_a_sweep_would_run():
    asked = question(num_seeds=3)
    assert not asked.problems()
    trials = asked.trials({"rank": 2})
    wanted = [
        make_trial("state_machine", "factored", **FIXED, rank=2, init_seed=seed, data_seed=seed) for seed in range(3)
    ]
    assert [trial.id for trial in trials] == [trial.id for trial in wanted]


def test_what_changes_an_answer_changes_the_identity():
    one = question(num_seeds=3)
    others = [
        question("rank=1,2,4,8", num_seeds=3),
        question(num_seeds=2),
        question(num_seeds=3, objective=Objective(aggregate="median")),
        question(num_seeds=3, smallest=Level("rank", 0.9)),
        question(num_seeds=3, first_rung=0),
        question(num_seeds=3, sampler_seed=1),
        question(num_seeds=3, fixed=FIXED | {"width": 32}),
    ]
    assert len({each.id for each in [one, *others]}) == 8


def test_a_default_that_is_spelled_out_is_the_same_question():
    assert question().id == question(fixed=FIXED | {"batch_size": 64}).id


def test_a_question_survives_the_store():
    asked = question("rank=1,2", "learning_rate=1e-4..1e-2", num_seeds=2, smallest=Level("rank", 0.9))
    assert SearchSpec.from_dict(asked.to_dict()) == asked
    assert SearchSpec.from_dict(asked.to_dict()).id == asked.id


def test_points_are_compared_at_a_ninth_and_a_third_of_their_steps():
    assert question().rungs == (100, 300)
    assert question(first_rung=0).rungs == ()
    assert question("steps=900,9000", fixed={"modulus": 5}).rungs == (1000, 3000)


def test_nothing_is_tuned_on_the_test_length():
    for metric in ("accuracy_500", "ood_accuracy"):
        (problem,) = question(objective=Objective(metric)).problems()
        assert "search by accuracy_200" in problem


def test_a_metric_that_is_not_measured_is_refused_with_one_that_is():
    (problem,) = question(objective=Objective("accuracy_99")).problems()
    assert "add it to --curve-lengths" in problem
    (problem,) = question(objective=Objective("acuracy_100")).problems()
    assert "did you mean 'accuracy_100'" in problem


def test_all_problems_come_at_once():
    asked = question(
        "additive=none,input", num_seeds=0, first_rung=-1, smallest=Level("additive", 1), fixed=FIXED | {"init_seed": 1}
    )
    assert len(asked.problems()) == 4
    assert "add --vary width" in question(smallest=Level("width", 0.9)).problems()[0]


def test_a_question_whose_points_are_all_impossible_says_why_before_any_work():
    asked = question("block_size=3,5", fixed=FIXED, model="block_diagonal")
    assert any("block" in problem for problem in asked.problems())


def test_a_question_with_one_possible_point_is_asked():
    asked = question("block_size=3,4", fixed=FIXED, model="block_diagonal")
    assert not asked.problems()
    assert asked.example.model.block_size == 4
    assert not dataclasses.replace(asked, num_seeds=2).problems()
