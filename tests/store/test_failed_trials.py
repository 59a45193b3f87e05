"""The rule for which trials have failed, which plan, status, failures, reports and bundles share."""

import time

import pytest

from orch.planning.plan import TrialState, make_plan
from orch.running.status import read_failures, read_status
from orch.store import Store
from orch.store.failed_trials import failed_attempts, failed_trials
from tests.store.attempts import NOW, write_attempt, write_driver


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")


def test_an_attempt_that_never_ended_is_lost_once_its_driver_is_dead(store):
    write_attempt(store, "a", "start", 0)
    write_driver(store)
    assert failed_trials(store, ()) == set()
    write_driver(store, host="elsewhere", beat=time.time() - 3600)
    assert failed_trials(store, ()) == {"trial"}
    (attempt,) = failed_attempts(store, ())["trial"]
    assert (attempt["outcome"], attempt["error_signature"], attempt["at"]) == ("lost", "lost driver", NOW)


@pytest.mark.parametrize("is_alive", [True, False])
def test_plan_status_and_failures_agree_on_an_attempt_that_never_ended(store, is_alive):
    (trial,) = [planned.trial for planned in make_plan(["main"], "smoke", ["model=rnn"], None).trials][:1]
    store.put_json(
        "sweeps/s.json", {"sweeps": ["main"], "where": [], "scale": "smoke", "seconds": {trial.id: 1.0}, "waiting": 0}
    )
    write_attempt(store, "a", "start", 0, trial_id=trial.id)
    if is_alive:
        write_driver(store)
    states = {planned.id: planned.state for planned in make_plan(["main"], "smoke", [], store).trials}
    in_failures = [trial_id for group in read_failures(store) for trial_id in group.trial_ids]
    (status,) = read_status(store).sweeps
    assert (states[trial.id] == TrialState.FAILED) == (trial.id in in_failures) == bool(status.failed) == (not is_alive)


def test_a_trial_that_is_being_retried_has_not_failed(store):
    write_attempt(store, "a", "start", 0)
    write_attempt(store, "a", "end", 1, "failed")
    write_attempt(store, "b", "start", 2, driver_id="other")
    write_driver(store, "other")
    assert failed_trials(store, ()) == set()
    assert read_failures(store) == []


def test_the_failed_attempts_of_a_trial_are_listed_oldest_first(store):
    for minute, outcome in enumerate(["lost", "failed", "hung"]):
        write_attempt(store, outcome, "start", 2 * minute)
        write_attempt(store, outcome, "end", 2 * minute + 1, outcome)
    assert [row["outcome"] for row in failed_attempts(store, ())["trial"]] == ["lost", "failed", "hung"]
    (group,) = read_failures(store)
    assert (group.signature, group.attempts, group.trial_ids) == ("hung signature", 1, ["trial"])


@pytest.mark.parametrize("outcome", ["interrupted", "pruned", "finished", "diverged"])
def test_a_trial_whose_last_attempt_was_stopped_or_finished_has_not_failed(store, outcome):
    write_attempt(store, "a", "end", 0, "failed")
    write_attempt(store, "b", "end", 1, outcome)
    assert failed_trials(store, ()) == set()


def test_a_trial_with_a_result_has_not_failed(store):
    write_attempt(store, "a", "end", 0, "failed")
    assert failed_trials(store, {"trial"}) == set()


def test_a_store_that_does_not_exist_has_no_failures_and_is_not_created(store, tmp_path):
    assert failed_trials(store, ()) == set()
    assert list(tmp_path.iterdir()) == []
