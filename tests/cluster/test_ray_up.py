"""`ray up cluster/local.yaml` for real: several hosts, a sweep from the head, a host that dies in the middle of it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from orch.planning.plan import make_plan
from orch.store import Store
from tests.cluster.conftest import Cluster
from tests.engine.conftest import wait_for

pytestmark = pytest.mark.cluster

WHERE_AM_I = """
import json, os, ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

ray.init(log_to_driver=False)

@ray.remote
def where():
    import orch
    return os.uname().nodename, orch.__file__

nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
places = [NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
print(json.dumps(sorted(ray.get([where.options(scheduling_strategy=place).remote() for place in places]))))
"""


def attempts(store: str, event: str) -> list[dict[str, Any]]:
    rows = Store.open(store).read("attempts").to_pylist()
    return sorted((row for row in rows if row["event"] == event), key=lambda row: row["at"])


def rows_on_disk(store: str) -> Counter[str]:
    """Every trials row in every part, counted without any of the store's own rules."""
    counts: Counter[str] = Counter()
    for path in (Path(store) / "trials").rglob("*.parquet"):
        counts.update(pq.read_table(path, columns=["trial_id"])["trial_id"].to_pylist())
    return counts


def resumed(store: str) -> set[str]:
    """The trials that workers went on with from their checkpoints, as the workers' logs say."""
    lines = [line for path in (Path(store) / "logs").glob("worker-*") for line in path.read_text().splitlines()]
    events = [event for event in map(json.loads, lines) if event["event"] == "unit started"]
    return {trial_id for event in events for trial_id in event["resumed"]}


def checkpointed_on(store: str, host: str) -> str | None:
    """The trial that a host is in the middle of, once there is a checkpoint of it."""
    started = [row["trial_id"] for row in attempts(store, "start") if row["host"] == host]
    if started and started[-1] not in Store.open(store).done() and Store.open(store).get_checkpoint(started[-1]):
        return started[-1]
    return None


def test_every_machine_runs_a_task_with_the_project_that_was_shipped_to_it(cluster: Cluster):
    shipped = [[name, str(cluster.hosts.home(name) / "orch/src/orch/__init__.py")] for name in cluster.members]
    assert cluster.python(WHERE_AM_I) == shipped
    wait_for(lambda: "0.0/3.0 CPU" in cluster.hosts.run(cluster.hosts.head, "ray status 2> /dev/null"))


def test_nobody_gets_in_without_the_token(cluster: Cluster):
    address = f"{cluster.hosts.addresses[cluster.hosts.head]}:6379"
    cluster.hosts.run(cluster.hosts.outside, f"RAY_AUTH_MODE=token ray status --address {address}")
    guess = f"RAY_AUTH_MODE=token RAY_AUTH_TOKEN=sesame ray status --address {address} 2>&1"
    assert "InvalidAuthToken" in cluster.hosts.run(cluster.hosts.outside, guess, expect=1)


def test_a_machine_lost_in_mid_sweep_costs_no_trial(cluster: Cluster):
    hosts, store = cluster.hosts, cluster.store
    wanted = {planned.trial.id for planned in make_plan(["frozen-parity"], "smoke", [], None).trials}
    lost = hosts.workers[0]
    command = "orch sweep frozen-parity --scale smoke --checkpoint-seconds 0.2"
    sweep = hosts.login(hosts.head, command)
    trial_id = wait_for(lambda: checkpointed_on(store, lost))
    hosts.kill(lost)
    output, errors = sweep.communicate(timeout=180)
    assert sweep.returncode == 0, output + errors
    assert f"{len(wanted)} trials finished" in output
    assert rows_on_disk(store) == Counter(wanted)
    outcomes = {row["attempt_id"]: row["outcome"] for row in attempts(store, "end")}
    ends = [(row["trial_id"], row["host"], outcomes[row["attempt_id"]]) for row in attempts(store, "start")]
    assert {host for _, host, _ in ends} == set(cluster.members)
    assert Counter(trial for trial, _, outcome in ends if outcome == "finished") == Counter(wanted)
    assert [end for end in ends if end[2] != "finished"] == [(trial_id, lost, "lost")]
    assert trial_id in resumed(store)


def test_a_machine_that_comes_back_joins_again(cluster: Cluster):
    worker = cluster.hosts.workers[0]
    others = [name for name in cluster.members if name != worker]
    if cluster.alive(cluster.members, seconds=0) == cluster.members:
        cluster.hosts.kill(worker)
    assert cluster.alive(others) == others
    cluster.hosts.start(worker)
    assert cluster.alive(cluster.members) == cluster.members, cluster.log()


def test_a_head_that_dies_is_launched_again_and_resume_goes_on(cluster: Cluster):
    hosts, store = cluster.hosts, cluster.store
    before = Counter(Store.open(store).done())
    sweep = "orch sweep main --scale smoke --where model=rnn,modulus=2 --checkpoint-seconds 0.2"
    hosts.login(hosts.head, sweep)
    trial_id = wait_for(lambda: checkpointed_on(store, hosts.head))
    hosts.kill(hosts.head)
    hosts.start(hosts.head)
    cluster.up()
    hosts.run(hosts.head, "orch resume")
    wanted = {planned.trial.id for planned in make_plan(["main"], "smoke", ["model=rnn,modulus=2"], None).trials}
    assert rows_on_disk(store) == before + Counter(wanted)
    assert trial_id in resumed(store)


def test_ray_down_ends_ray_on_every_machine(cluster: Cluster):
    cluster.down()
    assert wait_for(lambda: not [name for name in cluster.members if runs_ray(cluster, name)], seconds=30)


def runs_ray(cluster: Cluster, name: str) -> bool:
    return not {"gcs_server", "raylet", "ray::IDLE"}.isdisjoint(cluster.hosts.run(name, "ps -A -o comm").split())
