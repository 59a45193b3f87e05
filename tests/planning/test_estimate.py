"""Estimates of the time of trials: from finished ones, from what `orch doctor` timed, and by arithmetic."""

import dataclasses
import json

import pytest

from orch.planning.estimate import Basis, Estimator, estimate_seconds
from orch.planning.plan import make_plan
from orch.planning.probed import Probed
from orch.planning.step_time import step_seconds
from orch.running.run_sweeps import _estimate_by_plan
from orch.sweeps.scales import PAPER, SCALES, SMOKE
from orch.sweeps.trial import make_trial
from tests.finished_trials import finish


def laptop_trial(model="lstm", task="modular_addition", **settings):
    return make_trial(task, model, **({"width": 64, "steps": 4000, "modulus": 5} | settings))


def estimator(store, *groups, device=None):
    for trials, how in groups:
        finish(store, trials, **how)
    return Estimator(store.read("trials"), device)


def test_a_measured_trial_is_estimated_to_take_as_long_again(store):
    trial = laptop_trial()
    known = estimator(store, ([trial], {"seconds": 123.0}))
    other_seed = dataclasses.replace(trial, init_seed=9, data_seed=9, learning_rate=1e-2)
    assert known.estimate(other_seed) == (pytest.approx(123.0), Basis.MEASURED)


def test_several_measurements_are_averaged(store):
    trials = [dataclasses.replace(laptop_trial(), init_seed=seed) for seed in range(2)]
    known = estimator(store, (trials[:1], {"seconds": 100.0}), (trials[1:], {"seconds": 300.0}))
    assert known.estimate(trials[0])[0] == pytest.approx(200.0)


def test_other_sizes_of_a_measured_model_are_scaled_by_the_arithmetic(store):
    small, large = laptop_trial(), laptop_trial(width=256)
    slower = 3 * estimate_seconds(small)
    known = estimator(store, ([small], {"seconds": slower}))
    assert known.estimate(large) == (pytest.approx(3 * estimate_seconds(large)), Basis.SCALED)


def test_a_trial_that_finished_in_a_pack_is_known_to_take_longer_alone(store):
    trial = laptop_trial()
    in_a_pack = {"seconds": 5.0, "wall_seconds": 20.0, "device_seconds": 5.0}
    known = estimator(store, ([trial], in_a_pack))
    other_seed = dataclasses.replace(trial, init_seed=9)
    assert known.estimate(other_seed, 4) == (pytest.approx(5.0), Basis.MEASURED)
    alone = 5.0 * estimate_seconds(trial) / estimate_seconds(trial, size=4)
    assert known.estimate(other_seed, 1) == (pytest.approx(alone), Basis.MEASURED)
    assert alone > 7.5


def test_only_trials_of_the_same_kernel_are_measurements(store, monkeypatch):
    wide = laptop_trial(width=256)  # compiled by default
    finish(store, [wide], seconds=1000.0)  # from before there were kernels: plain
    assert Estimator(store.read("trials")).estimate(wide) == (pytest.approx(estimate_seconds(wide)), Basis.ASSUMED)
    finish(store, [dataclasses.replace(wide, init_seed=1)], seconds=50.0, kernel="compiled")
    assert Estimator(store.read("trials")).estimate(wide) == (pytest.approx(50.0), Basis.MEASURED)
    monkeypatch.setenv("ORCH_KERNEL", "plain")
    assert Estimator(store.read("trials")).estimate(wide) == (pytest.approx(1000.0), Basis.MEASURED)


def test_packs_that_doctor_timed_are_the_basis_of_estimates(store):
    rates = {"device": "cpu", "host": "here", "ratios": {"lstm": 2.0}}
    published, small = laptop_trial(width=256), laptop_trial()
    old = Estimator(rates=[rates])
    assert old.estimate(small, 4) == (pytest.approx(2 * estimate_seconds(small, size=4)), Basis.TRIED)
    steps = {size: step_seconds(published, size) for size in (1, 9)}
    timed = Estimator(rates=[rates | {"packs": {"lstm": {"1": 3 * steps[1], "9": steps[9]}}}])
    expected = {1: 3.0, 3: 2.0, 9: 1.0, 20: 1.0}  # between two sizes by their logarithm
    for size, ratio in expected.items():
        assert timed.estimate(small, size) == (pytest.approx(ratio * estimate_seconds(small, size=size)), Basis.TRIED)
    assert timed.estimate(laptop_trial("rnn"))[1] is Basis.ASSUMED


def test_a_model_that_never_ran_is_estimated_by_arithmetic_alone(store):
    known = estimator(store, ([laptop_trial()], {"seconds": 1000.0}))
    other = laptop_trial("mamba")
    assert known.estimate(other) == (pytest.approx(estimate_seconds(other)), Basis.ASSUMED)


def test_trials_like_those_that_stopped_early_are_expected_to_stop_early(store):
    seeds = [dataclasses.replace(laptop_trial(), init_seed=seed) for seed in range(2)]
    known = estimator(store, (seeds[:1], {"steps": 500}), (seeds[1:], {"steps": 1500}))
    assert known.expected_steps(laptop_trial(init_seed=5)) == 1000
    assert known.expected_steps(laptop_trial(modulus=3)) == 1000, "another modulus of the task"
    assert known.expected_steps(laptop_trial(task="dihedral")) == 4000, "another task"
    assert known.expected_steps(laptop_trial(steps=9000)) == 9000, "another budget"


def test_steps_are_estimated_from_the_same_modulus_where_it_was_measured(store):
    known = estimator(store, ([laptop_trial(modulus=2)], {"steps": 200}), ([laptop_trial(modulus=5)], {"steps": 4000}))
    assert known.expected_steps(laptop_trial(modulus=2, init_seed=1)) == 200
    assert known.expected_steps(laptop_trial(modulus=3)) == 2100


def test_estimates_are_for_the_device_with_most_trials(store):
    known = estimator(
        store,
        ([laptop_trial()], {"seconds": 100.0}),
        (
            [laptop_trial(init_seed=1), laptop_trial(init_seed=2)],
            {"seconds": 70.0, "device": "NVIDIA A100", "kernel": "triton"},
        ),
    )
    assert known.device == "NVIDIA A100"
    assert known.estimate(laptop_trial())[0] == pytest.approx(70.0)
    on_cpu = Estimator(store.read("trials"), device="cpu")
    assert on_cpu.estimate(laptop_trial())[0] == pytest.approx(100.0)


def test_measurements_of_one_device_are_not_used_for_another(store):
    finish(store, [laptop_trial()], seconds=1000.0)
    assert Estimator(store.read("trials"), device="NVIDIA A100").estimate(laptop_trial())[1] == Basis.ASSUMED


def test_a_finished_trial_with_unknown_settings_is_ignored(store):
    finish(store, [laptop_trial()], seconds=1000.0)
    row = store.read("trials").to_pylist()[0]
    config = json.loads(row["config"])
    config["model"]["dropout"] = 0.1
    store.write("trials", [row | {"trial_id": "f" * 16, "config": json.dumps(config), "width": 512, "seconds": 1e9}])
    assert Estimator(store.read("trials")).estimate(laptop_trial())[0] == pytest.approx(1000.0)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ({}, {"steps": 8000}),
        ({"width": 128}, {"width": 256}),  # below 128 another kernel runs
        ({}, {"test_length": 900}),
        ({}, {"test_samples": 4096}),
        ({}, {"validation_samples": 4096}),
        ({}, {"eval_every": 50}),
        ({}, {"batch_size": 128}),
        ({"model": "transformer", "layers": 1}, {"model": "transformer", "layers": 4}),
        ({"task": "modular_addition"}, {"task": "modular_arithmetic"}),
    ],
)
def test_more_work_takes_longer(smaller, larger):
    assert estimate_seconds(laptop_trial(**larger)) > 1.001 * estimate_seconds(laptop_trial(**smaller))


def test_a_plan_gives_the_basis_of_its_estimate(store):
    trials = [planned.trial for planned in make_plan(["main"], "smoke", ["model=lstm"], None).trials]
    finish(store, trials[:1], seconds=3600.0)
    plan = make_plan(["main"], "smoke", ["model=lstm,rnn"], store)
    hours = plan.hours_by_basis
    assert hours[Basis.MEASURED] == pytest.approx(1.0, rel=0.1), "the other modulus of the same task"
    assert hours[Basis.SCALED] > 1, "the other tasks"
    assert 0 < hours[Basis.ASSUMED] < 0.1, "the model that never ran"


def test_ten_thousand_trials_share_few_estimates():
    """Planning is fast because trials that differ in rate and seed are estimated once."""
    known = Estimator()
    for seed in range(50):
        known.estimate(laptop_trial(init_seed=seed, data_seed=seed, learning_rate=1e-3 / (seed + 1)))
    assert len(known._known) == 1


def test_a_wider_scale_takes_longer():
    hours = {name: make_plan(["main"], name, [], None).hours for name in SCALES}
    assert hours[PAPER.name] > 100 * hours["laptop"] > 100 * hours[SMOKE.name]


def test_trials_of_several_plans_are_estimated_each_by_its_own(store):
    plans = [make_plan(["main"], "smoke", [f"model={model}"], store) for model in ("rnn", "lstm")]
    (lstm, *_) = plans[1].trials
    plans[1].estimator.learn({lstm.trial: Probed(step_seconds=5.0, validation_seconds=0.0, tests_seconds=0.0)})
    estimate = _estimate_by_plan(plans, "cpu")
    assert estimate(lstm.trial, 1) == plans[1].estimator.estimate(lstm.trial) != plans[0].estimator.estimate(lstm.trial)
    assert estimate(plans[0].trials[0].trial, 1)[1] is Basis.ASSUMED
