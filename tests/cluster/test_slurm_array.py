"""`orch slurm` on a real Slurm with one node."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from orch.planning.plan import make_plan
from orch.store import Store
from tests.cluster.hosts import ROOT
from tests.cluster.slurm_node import SlurmNode, missing

pytestmark = pytest.mark.cluster

SWEEP = ("frozen-parity", "--scale", "smoke")


@pytest.fixture
def slurm() -> Iterator[SlurmNode]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    with SlurmNode() as node:
        yield node


def submit(slurm: SlurmNode) -> str:
    """Submit a sweep that trains slowly, as two tasks, and return the array's id once both train."""
    slow = {"ORCH_TRAINING": "tests.engine.faults:open_training", "ORCH_FAULTS": '[["slow 2", {}]]'}
    environment = slurm.environment | slow | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    options = ("--tasks", "2", "--checkpoint-seconds", "3600", "--store", str(slurm.folder / "runs"))
    command = [sys.executable, "-m", "orch", "slurm", *SWEEP, *options]
    done = subprocess.run(
        command, cwd=slurm.folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    job = done.stdout.split()[2].rstrip(":")
    slurm.wait(lambda: len({row["driver_id"] for row in attempts(slurm, "start")}) == 2)
    return job


def attempts(slurm: SlurmNode, event: str) -> list[dict]:
    return [row for row in Store.open(slurm.folder / "runs").read("attempts").to_pylist() if row["event"] == event]


def finished_once(slurm: SlurmNode) -> None:
    """Wait for the end of all tasks: every trial has one row, and no attempt had to be given up."""
    slurm.wait(lambda: not slurm.jobs(), seconds=600)
    wanted = {planned.trial.id for planned in make_plan(["frozen-parity"], "smoke", [], None).trials}
    rows = Store.open(slurm.folder / "runs").read("trials")
    assert Counter(rows["trial_id"].to_pylist()) == Counter(dict.fromkeys(wanted, 1)), slurm.logs()
    outcomes = Counter(row["outcome"] for row in attempts(slurm, "end"))
    assert set(outcomes) == {"finished", "interrupted"}, outcomes
    assert not list((slurm.folder / "runs" / "drivers").glob("*.json")), "every driver ended by itself"


def test_before_its_time_is_up_a_task_checkpoints_and_returns_to_the_queue(slurm):
    job = submit(slurm)
    slurm.run("scancel", "--batch", "--signal=TERM", f"{job}_1")  # as --signal=B:TERM@120 does, when that comes
    slurm.wait(lambda: slurm.restarts(f"{job}_1") == 1)
    assert slurm.restarts(f"{job}_2") == 0
    finished_once(slurm)


def test_a_task_that_is_preempted_checkpoints_and_comes_back(slurm):
    job = submit(slurm)
    slurm.run("sbatch", "--partition=high", "--ntasks=2", "--wrap=true", f"--output={slurm.folder}/high.out")
    slurm.wait(lambda: slurm.restarts(f"{job}_1") == slurm.restarts(f"{job}_2") == 1)
    finished_once(slurm)


def test_a_task_that_is_cancelled_does_not_come_back(slurm):
    job = submit(slurm)
    slurm.run("scancel", job)
    slurm.wait(lambda: not slurm.jobs())
    assert slurm.restarts(f"{job}_1") == slurm.restarts(f"{job}_2") == 0
