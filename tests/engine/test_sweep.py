"""A sweep as its user meets it: on a full disk, on a bucket, again and again."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from orch.store import Store
from tests.engine.bucket import s3_bucket

SMALL = ("sweep", "main", "--scale", "smoke", "--where", "task=modular_addition", "--where", "model=rnn,lstm,rotation")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 100 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs root, to mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_named_and_resume_completes_once_there_is_space(sweeps, small_disk):
    location = str(small_disk / "runs")
    result = sweeps.run(*SMALL, "--store", location, expect=2)
    assert f"error: the store at {location} is full: free space, then run orch resume" in result.stderr
    assert "Traceback" not in result.stderr
    done = Store.open(location).done()
    assert len(done) < 6
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    sweeps.run("resume", "--store", location)
    assert len(Store.open(location).done()) == 6 > len(done)


def test_a_repeated_sweep_does_nothing_and_a_wider_one_only_what_is_new(sweeps):
    assert "4 trials finished" in sweeps.run(*SMALL, "--where", "model!=rotation").stdout
    assert "nothing to do" in sweeps.run(*SMALL, "--where", "model!=rotation").stdout
    assert "2 trials finished" in sweeps.run(*SMALL, "--decide", "cells").stdout, "another order, the same trials"
    status = json.loads(sweeps.run("status", "--json").stdout)
    assert [each["done"] for each in status["sweeps"]] == [4, 6] or [each["done"] for each in status["sweeps"]] == [
        6,
        4,
    ]
    assert status["finished_last_hour"] == 6


def test_discarded_results_run_again(sweeps):
    sweeps.run(*SMALL)
    shown = sweeps.run("discard", "--where", "model=rnn,modulus=2", "--reason", "a test", "--yes").stdout
    assert "1 result withdrawn" in shown
    assert "1 trial finished" in sweeps.run("resume").stdout


def test_time_that_is_up_ends_a_sweep_cleanly(sweeps):
    result = sweeps.run(*SMALL, "--max-hours", "0.0005", faults=[["slow 2", {}]], expect=3)
    assert "stopped: time is up" in result.stdout
    sweeps.run("resume")
    assert len(sweeps.store.done()) == 6


def test_dollars_that_are_spent_end_a_sweep_cleanly_and_status_tells_them(sweeps):
    money = ("--max-dollars", "0.01", "--dollars-per-hour", "100")
    result = sweeps.run(*SMALL, *money, faults=[["slow 2", {}]], expect=3)
    assert "stopped: --max-dollars is reached, about $" in result.stdout
    spent = json.loads(sweeps.run("status", "--json").stdout)["spent"]
    assert spent["dollars"] >= 0.01
    assert spent["runs"] == 1
    assert spent["per_hour"] is None, "nothing runs any more"
    assert f"spent: about ${spent['dollars']:,.2f} by 1 run\n" in sweeps.run("status").stdout


def test_the_on_finish_command_receives_the_outcome(sweeps):
    note = sweeps.folder / "note"
    sweeps.run(*SMALL, "--on-finish", f'echo "$ORCH_FINISHED $ORCH_FAILED" > {note}')
    assert note.read_text() == "6 0\n"


def test_a_failed_trial_can_be_run_in_this_process(sweeps):
    sweeps.run(*SMALL, expect=3, faults=[["raise", {"model": "rnn", "modulus": 2}]])
    (group,) = json.loads(sweeps.run("failures", "--json").stdout)
    (trial_id,) = group["trial_ids"]
    shown = sweeps.run("train", "--trial", trial_id, "--json").stdout
    assert json.loads(shown)["trial_id"] == trial_id


def test_two_settings_that_no_trial_has_are_an_error(sweeps):
    result = sweeps.run(*SMALL, "--where", "modulus=50", expect=2)
    assert "no trial matches" in result.stderr
    assert not Path(sweeps.location).exists()


def test_workers_write_to_a_bucket_and_status_reads_it(sweeps, monkeypatch):
    with s3_bucket(monkeypatch, sweeps.folder) as location:
        sweeps.run(*SMALL, "--store", location)
        assert len(Store.open(location).done()) == 6
        status = json.loads(sweeps.run("status", "--json", "--store", location).stdout)
        assert status["sweeps"][0]["done"] == 6
        assert "nothing to do" in sweeps.run(*SMALL, "--store", location).stdout


def test_more_than_a_day_of_work_is_not_started_without_confirmation(sweeps):
    result = sweeps.run("sweep", "main", "--scale", "paper", expect=2)
    assert "running on this machine only" in result.stderr.splitlines()[0]
    assert "nothing was started" in result.stderr
    assert not Path(sweeps.location).exists()


@pytest.mark.slow
def test_seeds_of_a_settled_cell_are_left_out_and_a_plain_sweep_runs_them(sweeps):
    (sweeps.folder / "few.py").write_text(
        '"""A model that fails."""\nimport orch\n\n'
        'cells = orch.grid(models=["rnn"], tasks=["modular_addition"], learning_rates=1e-3, seeds=7, steps=20,'
        " test_length=20)\n"
    )
    shown = sweeps.run(
        "sweep", "few.py", "--decide", "cells", "--confidence", "0.95", "--cpus", "1", "--pack", "1"
    ).stdout
    assert "4 trials finished" in shown
    assert "left out: 3 trials that no open cell needs" in shown
    assert (
        "nothing to do: all is settled"
        in sweeps.run("sweep", "few.py", "--decide", "cells", "--confidence", "0.95").stdout
    )
    assert "3 trials finished" in sweeps.run("sweep", "few.py").stdout
