"""Nodes that come and go: several Ray nodes on this machine, with GPUs that exist in name only."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from orch.running.status import read_status
from tests.cluster.metadata import metadata_server
from tests.engine.bucket import s3_bucket
from tests.engine.conftest import ROOT, Sweeps, wait_for

# Ray looks for free ports with sockets that it leaves to the collector of garbage.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")

SWEEP = ("sweep", "frozen-parity", "--scale", "smoke", "--checkpoint-seconds", "0.2")
ALIVE = """
import json, sys, ray
ray.init(address=sys.argv[1], log_to_driver=False)
print(json.dumps([node["NodeID"] for node in ray.nodes() if node["Alive"]]))
"""
SLOW = [["slow 0.7", {}]]


@pytest.fixture
def sweeps(tmp_path: Path) -> Iterator[Sweeps]:
    found = Sweeps(tmp_path)
    yield found
    found.end_all()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A head that runs no trials. Workers have the environment of their node, not of the driver."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("ORCH_FAULTS", json.dumps(SLOW))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "num_gpus": 0})
    yield made
    made.shutdown()


def finished_once(sweeps: Sweeps) -> None:
    rows = sweeps.store.read("trials").to_pylist()
    assert len({row["trial_id"] for row in rows}) == len(rows) == 8


def test_a_node_is_lost_and_another_joins_and_every_trial_has_its_row(cluster, sweeps):
    """With one node at a time: what runs after the first is gone runs on the one that joined."""
    first = cluster.add_node(num_cpus=2, num_gpus=2)
    process = sweeps.start(*SWEEP, faults=SLOW, RAY_ADDRESS=cluster.address)
    wait_for(lambda: list((sweeps.folder / "runs" / "checkpoints").glob("*.safetensors")))
    cluster.remove_node(first, allow_graceful=False)
    cluster.add_node(num_cpus=2, num_gpus=2)
    _, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    assert "in all up to 2 CPU cores, 2 GPUs" in errors
    finished_once(sweeps)
    ends = [row for row in sweeps.attempts("end") if row["outcome"] == "lost"]
    assert ends
    assert {row["error_signature"] for row in ends} == {"lost machine"}
    assert {row["device"] for row in sweeps.attempts("start")} == {"cuda"}


def test_a_node_that_joins_is_used_at_once(cluster, sweeps, monkeypatch):
    slower = [["slow 2", {}]]  # the first node alone needs longer than a node and its worker take to start
    monkeypatch.setenv("ORCH_FAULTS", json.dumps(slower))
    cluster.add_node(num_cpus=1, num_gpus=1)
    process = sweeps.start(*SWEEP, faults=slower, RAY_ADDRESS=cluster.address)
    wait_for(lambda: sweeps.attempts("start"))
    cluster.add_node(num_cpus=1, num_gpus=1)
    _, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    finished_once(sweeps)
    assert len({row["pid"] for row in sweeps.attempts("start")}) >= 2


def test_a_node_on_which_every_attempt_fails_is_left_alone_and_its_trials_go_elsewhere(cluster, sweeps, monkeypatch):
    monkeypatch.setenv("ORCH_FAULTS", json.dumps([["raise", {}]]))
    sick = cluster.add_node(num_cpus=1)
    monkeypatch.setenv("ORCH_FAULTS", json.dumps([["slow 3", {}]]))
    cluster.add_node(num_cpus=1)
    process = sweeps.start(*SWEEP, "--pack", "1", faults=SLOW, RAY_ADDRESS=cluster.address)
    named = f"{os.uname().nodename} (Ray node {sick.node_id[:8]}): RuntimeError in"
    wait_for(lambda: any(each.startswith(named) for each in read_status(sweeps.store).quarantined), seconds=180)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    finished_once(sweeps)
    assert "left alone" in errors, errors
    failed = [row for row in sweeps.attempts("end") if row["outcome"] == "failed"]
    assert len(failed) < 8, "an attempt begun before the workers could read of it may fail, but not all"


def test_on_a_bucket_with_a_worker_and_then_the_driver_killed(cluster, sweeps, monkeypatch):
    cluster.add_node(num_cpus=2, num_gpus=2)
    with s3_bucket(monkeypatch, sweeps.folder) as location:
        sweeps.location = location
        process = sweeps.start(*SWEEP, faults=SLOW, RAY_ADDRESS=cluster.address)
        started = wait_for(lambda: sweeps.attempts("start"))
        os.kill(started[0]["pid"], signal.SIGKILL)
        wait_for(lambda: any(row["outcome"] == "lost" for row in sweeps.attempts("end")))
        process.send_signal(signal.SIGKILL)
        process.wait()
        sweeps.run("resume", faults=SLOW, RAY_ADDRESS=cluster.address)
        finished_once(sweeps)


def test_a_machine_that_is_reclaimed_hands_its_trials_over_and_starts_no_more(cluster, sweeps, monkeypatch):
    with metadata_server() as metadata:
        monkeypatch.setenv("ORCH_CLOUD", "aws")
        monkeypatch.setenv("ORCH_METADATA", metadata.address)
        monkeypatch.setenv("ORCH_FAULTS", json.dumps([["slow 15", {}]]))  # the notice comes before a trial is finished
        reclaimed = cluster.add_node(num_cpus=2, num_gpus=2)
        monkeypatch.setenv("ORCH_CLOUD", "none")
        monkeypatch.setenv("ORCH_FAULTS", json.dumps(SLOW))
        once = ("--checkpoint-seconds", "3600")  # what is resumed comes from the checkpoint that the notice caused
        process = sweeps.start(*SWEEP, *once, faults=SLOW, RAY_ADDRESS=cluster.address)
        wait_for(lambda: metadata.num_asked)
        metadata.reclaimed = True
        wait_for(lambda: any(row["outcome"] == "interrupted" for row in sweeps.attempts("end")))
        cluster.add_node(num_cpus=2, num_gpus=2)
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    finished_once(sweeps)
    outcomes = {row["outcome"] for row in sweeps.attempts("end")}
    assert outcomes == {"finished", "interrupted"}, "nothing was lost, and no trial is to blame"
    asked = [sys.executable, "-c", ALIVE, cluster.address]
    alive = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    assert len(alive) == 2, "the head and the second node"
    assert reclaimed.node_id not in alive, "Ray lets a node go that is drained, as soon as nothing runs there"


def test_a_worker_that_is_asked_to_end_checkpoints_first_and_another_goes_on(cluster, sweeps, monkeypatch, tmp_path):
    asked = tmp_path / "asked"
    waiting = [[f"wait for {asked}", {}]]
    monkeypatch.setenv("ORCH_FAULTS", json.dumps(waiting))
    cluster.add_node(num_cpus=1)
    once = ("--checkpoint-seconds", "3600")
    process = sweeps.start(*SWEEP, *once, faults=waiting, RAY_ADDRESS=cluster.address)
    started = wait_for(lambda: sweeps.attempts("start"))
    os.kill(started[0]["pid"], signal.SIGTERM)
    time.sleep(5)  # until the worker has noticed; it trains only from then on
    asked.touch()
    left = wait_for(lambda: [row for row in sweeps.attempts("end") if row["outcome"] == "interrupted"])
    assert 0 < left[0]["step"] < 20, "it ends before its trial does"
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    finished_once(sweeps)
    assert {row["outcome"] for row in sweeps.attempts("end")} == {"finished", "interrupted"}, "nothing was lost"
    assert len({row["pid"] for row in sweeps.attempts("start")}) == 2


def test_gpus_that_no_machine_has_are_refused_at_once(cluster, sweeps):
    cluster.add_node(num_cpus=1)
    refused = sweeps.run(*SWEEP, "--device", "cuda", RAY_ADDRESS=cluster.address, expect=2)
    assert "no machine that the cluster has or can start has a GPU" in refused.stderr
    assert not sweeps.store.exists(), "nothing was started"
