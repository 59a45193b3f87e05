"""The order in which a sweep runs the trials that have no result."""

from orch.planning.packs import make_packs
from orch.planning.plan import make_plan
from orch.running.run_sweeps import _to_do
from orch.running.units import Unit


def test_first_a_canary_of_every_model_and_task_then_the_longest_first():
    by_id = _to_do([make_plan(["main"], "laptop", [], None)])
    todo = [by_id[trial.id] for pack in make_packs(by_id.values(), "cpu", most=1) for trial in pack]
    kinds = {(planned.trial.model.name, planned.trial.task.name) for planned in todo}
    first, rest = todo[: len(kinds)], todo[len(kinds) :]
    assert {(planned.trial.model.name, planned.trial.task.name) for planned in first} == kinds
    for canary in first:
        alike = [
            each for each in todo if (each.trial.model, each.trial.task) == (canary.trial.model, canary.trial.task)
        ]
        assert canary.seconds <= min(each.seconds for each in alike)
    assert [each.seconds for each in rest] == sorted((each.seconds for each in rest), reverse=True)
    assert len({each.id for each in todo}) == len(todo) == 342


def test_with_little_time_the_cheapest_come_first():
    todo = _to_do([make_plan(["main"], "laptop", ["model=lstm,bilinear"], None)])
    seconds = {planned.id: planned.seconds for planned in todo.values()}
    order = make_packs(todo.values(), "cpu", cheapest_first=True)
    costs = [sum(seconds[trial.id] for trial in pack) for pack in order]
    assert costs == sorted(costs)
    assert sorted(trial.id for pack in order for trial in pack) == sorted(todo)


def test_a_trial_that_two_requests_want_is_run_once():
    plans = [make_plan(["main"], "smoke", ["model=rnn"], None), make_plan(["main"], "smoke", ["modulus=2"], None)]
    todo = _to_do(plans)
    assert len(todo) < sum(len(plan.trials) for plan in plans)


def test_on_a_gpu_packs_cross_cells_and_canaries_run_first_and_alone():
    todo = _to_do([make_plan(["main"], "laptop", ["model=rnn,block_diagonal"], None)])
    packs = make_packs(todo.values(), "cuda")
    kinds = {(planned.trial.model.name, planned.trial.task.name) for planned in todo.values()}
    assert [len(pack) for pack in packs[: len(kinds)]] == [1] * len(kinds)
    assert any(len({trial.task for trial in pack}) > 1 for pack in packs)
    assert sorted(trial.id for pack in packs for trial in pack) == sorted(todo)
    for pack in packs:
        assert len({trial.packable() for trial in pack}) == 1


def test_a_unit_across_cells_splits_into_neighbours():
    todo = _to_do([make_plan(["main"], "laptop", ["model=rnn"], None)])
    mixed = Unit(max(make_packs(todo.values(), "cuda"), key=len))
    first, rest = mixed.split(4)
    assert rest is not None
    assert first.trials + rest.trials == mixed.trials
    readable = [trial.vocabulary.readable for trial in mixed.trials]
    assert readable == sorted(readable)
