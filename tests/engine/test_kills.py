"""The driver is killed ten times, and another driver starts at the same time. Every trial gets one result."""

import random
import signal
import time
from collections import Counter

import pyarrow.parquet as pq
import pytest

from orch.planning.plan import make_plan
from tests.engine.conftest import wait_for

SIXTY = ("main", "--scale", "smoke", "--where", "model!=mamba", "--where", "layers!=2,4")


def planned_ids(sweeps) -> set[str]:
    where = [SIXTY[index + 1] for index, word in enumerate(SIXTY) if word == "--where"]
    return {planned.trial.id for planned in make_plan(["main"], "smoke", where, None).trials}


def rows_on_disk(sweeps) -> Counter:
    """Every trials row in every part, counted without any of the store's own rules."""
    counts: Counter = Counter()
    for path in (sweeps.folder / "runs" / "trials").rglob("*.parquet"):
        counts.update(pq.read_table(path, columns=["trial_id"])["trial_id"].to_pylist())
    return counts


@pytest.mark.slow
def test_a_driver_killed_ten_times_loses_nothing_and_repeats_nothing(sweeps):
    """Kill it at seeded moments: before the first trial, in training, between the write and the rename of a part, and
    while compacting. Its workers are orphaned each time."""
    wanted = planned_ids(sweeps)
    assert len(wanted) == 60
    moments = random.Random(20251116)
    crashes = {2: "part-written:9", 4: "curves-written:5", 6: "part-renamed:12", 8: "compacted-written:1"}
    for turn in range(10):
        environment = {"ORCH_CRASH_AT": crashes[turn]} if turn in crashes else {}
        process = sweeps.start("sweep", *SIXTY, "--checkpoint-seconds", "0.2", faults=[["slow", {}]], **environment)
        if turn == 0:
            time.sleep(1.5)  # Ray is not even up
        else:
            before = len(sweeps.attempts("start"))
            wait_for(lambda n=before, p=process: len(sweeps.attempts("start")) > n or p.poll() is not None)
            time.sleep(moments.uniform(0.0, 5.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    sweeps.run("sweep", *SIXTY)
    store = sweeps.store
    assert store.done() == wanted
    rows = store.read("trials").to_pylist()
    assert Counter(row["trial_id"] for row in rows) == Counter(dict.fromkeys(wanted, 1))
    finished = {row["trial_id"]: row["finished_at"] for row in rows}
    late = [row for row in sweeps.attempts("start") if row["at"] > finished[row["trial_id"]]]
    assert not late, "a trial was started again after its row was written"
    curves = store.read("curves").to_pylist()
    assert Counter(row["trial_id"] for row in curves) == Counter(dict.fromkeys(wanted, 2))
    assert "nothing to do" in sweeps.run("sweep", *SIXTY).stdout


def test_a_worker_lost_between_its_result_and_its_report_does_not_train_the_trial_again(sweeps):
    few = ("frozen-parity", "--scale", "smoke", "--where", "additive=none")
    sweeps.run("sweep", *few, ORCH_CRASH_AT="trial-written:1")
    starts = Counter(row["trial_id"] for row in sweeps.attempts("start"))
    assert starts
    assert starts == Counter(sweeps.store.done())
    assert rows_on_disk(sweeps) == starts


def test_a_second_driver_says_who_holds_the_store_and_stops(sweeps):
    first = sweeps.start("sweep", *SIXTY, faults=[["slow", {}]])
    wait_for(lambda: sweeps.attempts("start"))
    second = sweeps.run("sweep", *SIXTY, expect=2)
    assert f"process {first.pid} on" in second.stderr
    assert "--join" in second.stderr
    first.send_signal(signal.SIGKILL)
    first.wait()
    third = sweeps.start("sweep", *SIXTY, faults=[["slow", {}]])
    before = len(sweeps.attempts("start"))
    wait_for(lambda: len(sweeps.attempts("start")) > before)  # the lease of the dead driver blocks no other
    third.send_signal(signal.SIGKILL)
    third.wait()


@pytest.mark.slow
def test_a_machine_that_is_about_to_be_gone_stops_its_own_driver(sweeps):
    notice = sweeps.folder / "notice"
    options = ("--checkpoint-seconds", "3600", "--cpus", "1")
    process = sweeps.start("sweep", *SIXTY, *options, faults=[["slow", {}]], ORCH_RECLAIM_FILE=str(notice))
    wait_for(lambda: sweeps.attempts("start"))
    notice.touch()
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 3, errors
    assert f"stopped: this machine is about to be gone: {notice} says so; " in output
    outcomes = {row["outcome"] for row in sweeps.attempts("end")}
    assert outcomes <= {"finished", "interrupted"}, "no trial failed"
    assert len(sweeps.store.done()) < len(planned_ids(sweeps))


def test_two_drivers_that_join_share_the_work(sweeps):
    first = sweeps.start("sweep", *SIXTY, "--cpus", "1", faults=[["slow", {}]])
    wait_for(lambda: sweeps.attempts("start"))
    second = sweeps.start("sweep", *SIXTY, "--cpus", "1", "--join", faults=[["slow", {}]])
    for process in (first, second):
        process.communicate(timeout=240)
    sweeps.run("sweep", *SIXTY)
    assert sweeps.store.done() == planned_ids(sweeps)
    drivers = Counter(row["driver_id"] for row in sweeps.attempts("start"))
    assert len([count for count in drivers.values() if count >= 5]) == 2, drivers
    assert sum(drivers.values()) <= len(planned_ids(sweeps)) + 6, "the two did much of the work twice"
