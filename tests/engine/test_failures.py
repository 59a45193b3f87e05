"""The recorded outcomes of trials that raise, diverge, hang or take all memory, and of workers that are killed."""

import dataclasses
import json
import os
import signal
from pathlib import Path

import pytest

from orch.store import Store
from orch.sweeps.trial import Trial
from orch.training.train import train
from tests.engine.conftest import wait_for

SMOKE = ("--scale", "smoke", "--where", "task=modular_addition,modulus=2")


def available_fraction(margin_bytes: int) -> str:
    """The share of this machine's memory that is in use now, plus a margin."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    info = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    return f"{(info['MemTotal'] - info['MemAvailable'] + margin_bytes) / info['MemTotal']:.4f}"


def test_a_worker_killed_in_mid_trial_costs_nothing_and_changes_nothing(sweeps):
    """After kill -9 the trial continues from its checkpoint, and its row equals the uninterrupted run's."""
    arguments = ("sweep", "main", *SMOKE, "--where", "model=rnn", "--checkpoint-seconds", "0.1", "--cpus", "1")
    process = sweeps.start(*arguments, faults=[["slow", {}]])
    wait_for(lambda: list((sweeps.folder / "runs" / "checkpoints").glob("*.safetensors")))
    first = sweeps.attempts("start")[0]
    os.kill(first["pid"], signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert [row["outcome"] for row in sweeps.attempts("end")] == ["lost", "finished"]
    assert sweeps.attempts("start")[1]["pid"] != first["pid"]
    logs = "".join(path.read_text() for path in (sweeps.folder / "runs" / "logs").glob("worker-*"))
    assert any(json.loads(line).get("resumed") for line in logs.splitlines()), "the second attempt began from nothing"
    (row,) = sweeps.store.read("trials").to_pylist()
    expected = train(Trial.from_dict(json.loads(row["config"])))
    assert row["validation_loss"] == expected.curve[-1].validation_loss
    assert {point["length"]: point["accuracy"] for point in row["length_curve"]} == expected.test_accuracy
    assert not list((sweeps.folder / "runs" / "checkpoints").iterdir()), "the checkpoint outlived its trial"
    assert row["git_commit"] is not None
    assert (sweeps.folder / "runs" / "weights" / f"{row['trial_id']}.safetensors").exists()


@pytest.mark.slow
def test_each_kind_of_failure_is_recorded_and_only_those_trials_are_resumed(sweeps):
    faults = [
        ["raise", {"model": "lstm"}],
        ["hang", {"model": "rotation"}],
        ["memory", {"model": "factored"}],
    ]
    models = "model=lstm,rotation,factored,rnn,bilinear"
    memory = {
        "RAY_memory_usage_threshold": available_fraction(3 << 30),
        "RAY_memory_monitor_refresh_ms": "100",
    }
    arguments = ("sweep", "main", *SMOKE, "--where", models, "--hang-seconds", "30")
    result = sweeps.run(*arguments, expect=3, faults=faults, **memory)
    assert "2 trials finished" in result.stdout
    assert "1 failed, 1 hung, 1 out of memory" in result.stdout
    store = sweeps.store
    done_models = set(store.read("trials", ["model"])["model"].to_pylist())
    assert done_models == {"rnn", "bilinear"}
    by_trial: dict[str, list[str]] = {}
    for row in sweeps.attempts("end"):
        by_trial.setdefault(row["trial_id"], []).append(row["outcome"])
    # Ray may end a neighbour too when memory runs out: what counts is how each trial's attempts ended at last.
    assert sorted(attempts[-1] for attempts in by_trial.values()) == [
        "failed", "finished", "finished", "hung", "out_of_memory",
    ]  # fmt: skip
    tries = {attempts[-1]: attempts.count(attempts[-1]) for attempts in by_trial.values()}
    assert (tries["failed"], tries["hung"], tries["out_of_memory"]) == (2, 1, 4)
    failed = [row for row in sweeps.attempts("end") if row["outcome"] == "failed"]
    assert len({row["pid"] for row in failed}) == 2, "the second try must be on another worker"
    assert all("this trial is broken" in row["traceback"] for row in failed)
    assert not any("sesame" in (row["traceback"] + row["error_message"]) for row in failed)
    shown = sweeps.run("failures").stdout
    assert "1 trial, 2 attempts: RuntimeError in" in shown
    assert "orch train --trial" in shown
    assert "sesame" not in shown

    finished_before = {row["trial_id"] for row in sweeps.attempts("end") if row["outcome"] == "finished"}
    num_starts = len(sweeps.attempts("start"))
    sweeps.run("resume")
    again = sweeps.attempts("start")[num_starts:]
    assert len(again) == 3
    assert not finished_before & {row["trial_id"] for row in again}
    assert len(sweeps.store.done()) == 5
    assert "no trial has failed" in sweeps.run("failures").stdout


def test_a_diverged_trial_is_a_result(sweeps, monkeypatch):
    from orch.running.worker import UnitRun

    trial = Trial.from_dict(dataclasses.replace(_any_trial(), learning_rate=1e38).to_dict())
    unit = {
        "trials": [trial.to_dict()], "attempts": {trial.id: "a1"}, "store": sweeps.location, "driver_id": "d",
        "device": "cpu", "threads": 1, "checkpoint_seconds": 60.0, "weights_limit": 0,
        "training": "orch.running.worker:open_training", "code": [], "git_commit": None, "git_dirty": None,
    }  # fmt: skip
    run = UnitRun(unit)
    assert run.run_for(60)["done"]
    (row,) = Store.open(sweeps.location).read("trials").to_pylist()
    assert row["stop_reason"] == "diverged"
    assert [row["outcome"] for row in sweeps.attempts("end")] == ["diverged"]


def _any_trial() -> Trial:
    from tests.small import small_trial

    return small_trial("rnn")


@pytest.mark.slow
def test_a_broken_image_stops_the_sweep_and_is_named(sweeps):
    result = sweeps.run(
        "sweep", "main", "--scale", "smoke", "--where", "task=modular_addition", faults=[["raise", {}]], expect=2
    )
    assert "20 attempts in a row failed with the same error" in result.stderr
    assert "RuntimeError in" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_checkpoints_everything_and_resume_continues_from_there(sweeps, number):
    arguments = ("sweep", "main", *SMOKE, "--where", "model=rnn,lstm")
    process = sweeps.start(*arguments, faults=[["slow 3", {}]])
    wait_for(lambda: len(sweeps.attempts("start")) == 2)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    assert "orch resume continues" in output
    unfinished = [row for row in sweeps.attempts("end") if row["outcome"] == "interrupted"]
    names = {path.stem for path in (sweeps.folder / "runs" / "checkpoints").iterdir()}
    assert {row["trial_id"] for row in unfinished} == names
    sweeps.run("resume")
    assert len(sweeps.store.done()) == 2
    assert not list((sweeps.folder / "runs" / "drivers").iterdir())


def test_no_ray_noise_reaches_the_user(sweeps):
    result = sweeps.run("sweep", "main", *SMOKE, "--where", "model=rnn")
    assert result.stdout.startswith("1 trial finished")
    lines = result.stderr.splitlines()
    assert lines[0].startswith("running on this machine only (")
    assert len(lines) <= 4, result.stderr
