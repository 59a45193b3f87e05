"""A point in a worker: its seeds in turn, each an ordinary trial, in a real store."""

import pytest

from orch.running.worker import DEFAULT_TRAINING
from orch.search.objective import Objective
from orch.search.point_run import PointRun
from orch.search.validations import combined
from orch.store import Store
from orch.training.train import train
from tests.small import small_trial

TRIALS = [small_trial("rnn", steps=40, init_seed=seed, data_seed=seed) for seed in range(3)]
TOLD = "searches/abc/told/0001-key.json"


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")


def unit(store, trials=TRIALS, known=None, rungs=(20,)):
    return {
        "trials": [trial.to_dict() for trial in trials],
        "attempts": {trial.id: f"attempt {trial.id}" for trial in trials},
        "store": store.uri,
        "driver_id": "driver",
        "device": "cpu",
        "threads": 1,
        "checkpoint_seconds": 1000.0,
        "weights_limit": 10_000_000,
        "training": DEFAULT_TRAINING,
        "code": [],
        "git_commit": None,
        "git_dirty": None,
        "objective": {"metric": "accuracy_10", "aggregate": "mean"},
        "known": known or {},
        "rungs": rungs,
        "result_path": TOLD,
    }


def outcomes(store):
    rows = store.read("attempts").to_pylist()
    return {row["trial_id"]: (row["outcome"], row["step"]) for row in rows if row["event"] == "end"}


def test_it_stops_at_a_rung_with_all_seeds_at_the_same_step(store):
    report = PointRun(unit(store)).run_for(60)
    assert set(report["steps"].values()) == {20}
    assert not report["done"]
    assert [step for step, _ in report["validations"]] == [10, 20]
    assert not store.done()


def test_a_finished_point_leaves_the_rows_that_a_sweep_would(store):
    run = PointRun(unit(store))
    reports = [run.run_for(60), run.run_for(60)]
    assert reports[-1]["done"]
    assert store.done() == {trial.id for trial in TRIALS}
    results = [train(trial) for trial in TRIALS]
    rows = {row["trial_id"]: row for row in store.read("trials").to_pylist()}
    assert [rows[trial.id]["ood_accuracy"] for trial in TRIALS] == [result.ood_accuracy for result in results]
    assert all(store.get_weights(trial.id) is not None for trial in TRIALS)
    assert {outcome for outcome, _ in outcomes(store).values()} == {"finished"}
    curves = [[(point.step, point.validation_accuracy) for point in result.curve] for result in results]
    told = [validation for report in reports for validation in report["validations"]]
    assert told == combined(curves, Objective())


def test_a_point_that_the_driver_gave_up_is_pruned_and_keeps_its_checkpoints(store):
    run = PointRun(unit(store))
    run.run_for(60)
    store.put_json(TOLD, {})
    run.stop()
    assert outcomes(store) == {trial.id: ("pruned", 20) for trial in TRIALS}
    assert not store.done()
    assert all(store.get_checkpoint(trial.id) is not None for trial in TRIALS)


def test_a_point_that_is_only_left_is_interrupted_and_goes_on_where_it_was(store):
    run = PointRun(unit(store))
    before = run.run_for(60)["validations"]
    run.stop()
    assert {outcome for outcome, _ in outcomes(store).values()} == {"interrupted"}
    report = PointRun(unit(store)).run_for(60)
    assert set(report["begun"].values()) == {20}
    assert report["done"]
    assert report["validations"][: len(before)] == before, "what was before is told again, for the comparison"


def test_seeds_that_were_finished_before_count_as_they_ended(store):
    known = {TRIALS[0].id: [(10, 1.0)]}
    report = PointRun(unit(store, TRIALS[1:], known)).run_for(60)
    alone = [train(trial).curve for trial in TRIALS[1:]]
    values = [1.0, *(curve[1].validation_accuracy for curve in alone)]
    assert report["validations"][1] == (20, pytest.approx(sum(values) / 3))
