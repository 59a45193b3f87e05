"""Plans: the state of every trial according to a store, and the hours of the packs of the remaining ones."""

import json
from pathlib import Path

import pytest

from orch.cli import _options
from orch.core.errors import UnknownName
from orch.planning.estimate import estimate_seconds
from orch.planning.packs import make_packs, packed
from orch.planning.plan import TrialState, make_plan, wall_seconds
from orch.running.progress import duration
from orch.store import DEFAULT_STORE
from orch.sweeps.registry import SWEEPS
from orch.sweeps.scales import LAPTOP
from tests.command_line import orch
from tests.finished_trials import finish
from tests.new_process import command_imports
from tests.store.attempts import write_attempt, write_driver


def attempt(store, trial, minute, event, outcome=None):
    write_attempt(store, f"{trial.id}-{minute // 10}", event, minute, outcome, trial.id)


def smoke_trials(store=None):
    return [planned.trial for planned in make_plan(["main"], "smoke", [], store).trials]


def states(plan):
    return {planned.id: planned.state for planned in plan.trials}


def test_without_a_store_everything_is_to_do():
    plan = make_plan(["main"], "smoke", [], None)
    assert plan.counts["to_do"] == plan.counts["trials"] == len(plan.trials) == 90
    assert plan.num_waiting == 0
    assert plan.hours > 0


def test_planning_creates_nothing_where_there_is_no_store_yet(store, tmp_path):
    assert make_plan(["main"], "smoke", [], store).counts["to_do"] == 90
    assert list(tmp_path.iterdir()) == []


def test_finished_trials_are_done_and_the_rest_is_to_do(store):
    trials = smoke_trials()
    finish(store, trials[:7])
    plan = make_plan(["main"], "smoke", [], store)
    assert {trial_id for trial_id, state in states(plan).items() if state == TrialState.DONE} == {
        t.id for t in trials[:7]
    }
    assert plan.counts["to_do"] == 83


def test_results_at_one_scale_do_not_count_at_another(store):
    finish(store, smoke_trials())
    assert make_plan(["main"], "laptop", [], store).counts["done"] == 0


def test_a_withdrawn_result_is_to_do_again(store):
    trials = smoke_trials()
    finish(store, trials[:2])
    store.discard([trials[0].id], "a bug")
    assert make_plan(["main"], "smoke", [], store).counts["done"] == 1


@pytest.mark.parametrize("outcome", ["failed", "lost", "out_of_memory", "hung"])
def test_a_trial_whose_last_attempt_failed_is_failed(store, outcome):
    trial, other = smoke_trials()[:2]
    attempt(store, trial, 0, "start")
    attempt(store, trial, 1, "end", outcome)
    plan = make_plan(["main"], "smoke", [], store)
    assert states(plan)[trial.id] == TrialState.FAILED
    assert states(plan)[other.id] == TrialState.TO_DO
    assert plan.counts["failed"] == 1


@pytest.mark.parametrize(
    "later",
    [
        pytest.param([(10, "start", None)], id="running again"),
        pytest.param([(10, "start", None), (11, "end", "interrupted")], id="interrupted later"),
    ],
)
def test_a_failed_trial_that_was_retried_is_to_do(store, later):
    trial = smoke_trials()[0]
    attempt(store, trial, 0, "start")
    attempt(store, trial, 1, "end", "failed")
    for minute, event, outcome in reversed(later):
        attempt(store, trial, minute, event, outcome)
    write_driver(store)
    assert states(make_plan(["main"], "smoke", [], store))[trial.id] == TrialState.TO_DO


def test_an_end_counts_as_later_than_a_start_of_the_same_time(store):
    trial = smoke_trials()[0]
    attempt(store, trial, 0, "end", "failed")
    attempt(store, trial, 0, "start")
    assert states(make_plan(["main"], "smoke", [], store))[trial.id] == TrialState.FAILED


def test_a_failed_trial_that_finished_later_is_done(store):
    trial = smoke_trials()[0]
    attempt(store, trial, 0, "start")
    attempt(store, trial, 1, "end", "failed")
    finish(store, [trial])
    assert states(make_plan(["main"], "smoke", [], store))[trial.id] == TrialState.DONE


def test_failed_trials_are_left_to_run_and_done_ones_are_not(store):
    trials = smoke_trials()
    finish(store, trials[:1])
    attempt(store, trials[1], 0, "start")
    attempt(store, trials[1], 1, "end", "failed")
    plan = make_plan(["main"], "smoke", [], store)
    left = [planned for planned in plan.trials if planned.left]
    assert {planned.id for planned in left} == {trial.id for trial in trials[1:]}
    assert plan.hours == pytest.approx(sum(planned.seconds for planned in left) / 3600)


def test_where_narrows_a_plan():
    plan = make_plan(["main"], "smoke", ["model=lstm,rnn", "modulus=2"], None)
    assert len(plan.trials) == 2 * 3
    assert {planned.trial.model.name for planned in plan.trials} == {"lstm", "rnn"}


def test_the_parts_of_a_plan_add_up_to_the_whole(store):
    finish(store, smoke_trials()[:20])
    plan = make_plan(["all"], "smoke", [], store)
    rows = plan.by_model_and_task()
    for name, total in plan.counts.items():
        assert sum(row[name] for row in rows) == pytest.approx(total)
    assert sum(plan.hours_by_basis.values()) == pytest.approx(plan.hours)
    assert plan.counts["trials"] == sum(plan.counts[state.replace(" ", "_")] for state in TrialState)


def test_an_unknown_scale_suggests_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'laptop'"):
        make_plan(["main"], "labtop", [], None)


def test_trials_of_other_sweeps_are_shared_even_if_those_are_not_planned(dependent):
    plan = make_plan(["dependent"], "smoke", [], None, catalogue=dependent)
    shared = [planned for planned in plan.trials if planned.shared]
    assert len(shared) == plan.counts["shared"] == 2
    assert {(planned.sweeps, planned.others) for planned in shared} == {
        (("dependent",), ("main",)),
        (("dependent",), ("main", "param-matched")),
    }
    both = make_plan(["main", "dependent"], "smoke", [], None, catalogue=dependent)
    assert sum(set(planned.sweeps) == {"main", "dependent"} for planned in both.trials) == 2
    assert not any("main" in planned.others or "dependent" in planned.others for planned in both.trials)


def test_waiting_trials_are_planned_and_counted_but_not_left_to_run(dependent):
    plan = make_plan(["dependent"], "smoke", [], None, catalogue=dependent)
    waiting = [planned for planned in plan.trials if planned.state == TrialState.WAITING]
    assert len(waiting) == plan.num_waiting == 4
    assert not any(planned.left for planned in waiting)
    assert all(planned.seconds > 0 for planned in waiting)
    assert plan.counts["waiting"] == 4


def test_where_narrows_waiting_trials_too(dependent):
    assert make_plan(["dependent"], "smoke", ["model=rnn"], None, catalogue=dependent).num_waiting == 2


def test_waiting_trials_are_to_do_once_the_store_has_the_results(dependent, store):
    first = make_plan(["dependent"], "laptop", [], store, catalogue=dependent)
    cells = [planned.trial for planned in first.trials if planned.state == TrialState.TO_DO]
    assert len(cells) == 2 * len(LAPTOP.learning_rates) * len(LAPTOP.seeds)
    finish(store, cells, accuracy=lambda trial: 0.9 if trial.learning_rate == 3e-4 else 0.1)
    second = make_plan(["dependent"], "laptop", [], store, catalogue=dependent)
    assert second.num_waiting == 0
    left = [planned.trial for planned in second.trials if planned.left]
    assert len(left) == 4
    assert {trial.learning_rate for trial in left} == {3e-4}
    finish(store, left)
    assert not any(
        planned.left for planned in make_plan(["dependent"], "laptop", [], store, catalogue=dependent).trials
    )


# Hours


def test_the_hours_of_a_plan_are_those_of_its_packs(tmp_path):
    """Every trial has its share of the pack that `make_packs` puts it in, and the first of a kind is alone."""
    plan = make_plan(["main"], "laptop", ["model=rnn"], None)
    in_packs = packed(plan)
    sizes = {trial.id: len(pack) for pack in make_packs(plan.trials, "cpu") for trial in pack}
    assert {each.id: each.pack for each in in_packs.trials} == sizes
    for each in in_packs.trials:
        assert each.seconds == pytest.approx(estimate_seconds(each.trial, size=each.pack))
    assert in_packs.num_packs == len(make_packs(plan.trials, "cpu"))
    assert in_packs.hours < 0.7 * plan.hours
    assert packed(plan, most=1).hours == plan.hours
    arguments = ("plan", "main", "--scale", "laptop", "--where", "model=rnn", "--store", str(tmp_path / "none"))
    for most, hours in ((), in_packs.hours), (("--pack", "1"), plan.hours):
        assert f"about {duration(3600 * hours)} are left for one CPU core" in orch(*arguments, *most).stdout


def test_trials_that_wait_are_planned_in_packs_too():
    plan = packed(make_plan(["data-efficiency"], "paper", ["model=rnn"], None, device="gpu"))
    waiting = [each for each in plan.trials if each.state is TrialState.WAITING]
    assert max(each.pack for each in waiting) > 1


# Commands


def test_orch_plan_works_where_there_is_no_store_yet(tmp_path):
    output = orch("plan", "main", "--scale", "smoke", "--store", str(tmp_path / "none")).stdout
    assert "main at smoke scale" in output
    assert "0 done, 0 failed, 90 to do" in output
    assert "100% by arithmetic" in output
    assert not (tmp_path / "none").exists()


def test_orch_plan_json_is_the_plan(store):
    finish(store, smoke_trials()[:5])
    output = orch("plan", "main", "frozen-parity", "--scale", "smoke", "--store", store.uri, "--json").stdout
    summary = json.loads(output)
    assert summary["sweeps"] == ["main", "frozen-parity"]
    assert (summary["trials"], summary["done"], summary["to_do"]) == (98, 5, 93)
    assert sum(row["trials"] for row in summary["by_model_and_task"]) == 98


def test_orch_plan_gives_the_reasons_for_waiting(tmp_path):
    path = str(Path(__file__).parents[1] / "sweeps" / "dependent.py")
    output = orch("plan", path, "--scale", "smoke", "--store", str(tmp_path / "none")).stdout
    assert "6 trials: 0 done, 0 failed, 2 to do, 4 waiting\n2 of them are in several sweeps" in output
    assert "4 wait for the best learning rate for rnn on modular_addition modulo 2 (2), the best" in output


def test_orch_plan_reads_the_store_that_the_environment_names(store, monkeypatch):
    finish(store, smoke_trials()[:5])
    monkeypatch.setenv("ORCH_STORE", store.uri)
    assert "5 done" in orch("plan", "main", "--scale", "smoke").stdout


def test_the_default_store_of_commands_is_that_of_the_library():
    assert _options.DEFAULT_STORE == DEFAULT_STORE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mian"], "did you mean 'main'"),
        (["main", "--scale", "tiny"], "'tiny' is not one of"),
        (["main", "--where", "modle=lstm"], "did you mean 'model'"),
        (["main", "--where", "modulus=7"], "no trial of main at laptop scale has modulus=7"),
    ],
)
def test_orch_plan_refuses_unknown_names_in_one_sentence(arguments, message, tmp_path):
    error = orch("plan", *arguments, "--store", str(tmp_path / "none"), expect=2).stderr
    assert message in error
    assert "Traceback" not in error


@pytest.mark.thorough
def test_orch_sweeps_counts_all_and_finished_trials(store):
    finish(store, smoke_trials()[:5])
    rows = {row["sweep"]: row for row in json.loads(orch("sweeps", "--store", store.uri, "--json").stdout)}
    assert rows.keys() == SWEEPS.keys()
    assert rows["main"]["paper"] == {"trials": 2430, "done": 0}
    assert rows["main"]["smoke"] == {"trials": 90, "done": 5}
    output = orch("sweeps", "--store", store.uri).stdout
    assert "5 of 90" in output
    assert "2,430" in output


@pytest.mark.thorough
@pytest.mark.parametrize("command", [["plan", "all", "--scale", "smoke"], ["sweeps"]])
def test_plan_and_sweeps_import_neither_torch_nor_ray_even_with_a_store(command, store):
    finish(store, smoke_trials()[:5])
    assert command_imports([*command, "--store", store.uri], {"torch", "ray", "transformers"}) == set()


def test_the_wall_time_is_at_least_that_of_the_longest_trial_alone():
    plan = packed(make_plan(["main"], "laptop", ["model=rnn"], None))
    total = sum(each.seconds for each in plan.trials)
    longest = max(estimate_seconds(each.trial) for each in plan.trials)
    assert wall_seconds(plan.trials, 2) == pytest.approx(total / 2)
    assert wall_seconds(plan.trials, 10_000) == pytest.approx(longest)
    assert wall_seconds([], 2) == 0
