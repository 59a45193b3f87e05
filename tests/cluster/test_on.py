"""`--on FILE` for real: from a machine outside, on a cluster that `ray up` started."""

import json
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from orch.planning.plan import make_plan
from orch.running.lease import Lease
from orch.running.provenance import COMMIT_VARIABLE
from orch.store import Store
from orch.usercode import name_sweeps
from tests.cluster.conftest import Cluster
from tests.cluster.hosts import ROOT
from tests.engine.conftest import wait_for

pytestmark = pytest.mark.cluster

FOLDERS = ("analysis", "cluster", "models", "orchestrator", "src", "tasks")
FILES = ("pyproject.toml", "constraints.txt", "README.md", "LICENSE")
EDIT = """
PACKAGES = (*PACKAGES, "click")
"""
"""To the project on the machine outside: every result names one more version."""


class Outside:
    """The user's own machine, with a project of its own that was edited after `ray up`."""

    def __init__(self, cluster: Cluster, store: Path):
        self.hosts, self.store = cluster.hosts, Store.open(store)
        self.folder = cluster.hosts.folder / "project"
        self.file = cluster.hosts.folder / "on.yaml"
        self.file.write_text(cluster.file.read_text().replace(cluster.store, str(store)))
        ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
        for name in FOLDERS:
            shutil.copytree(ROOT / name, self.folder / name, symlinks=True, ignore=ignore)
        for name in FILES:
            shutil.copy(ROOT / name, self.folder)
        with open(self.folder / "orchestrator" / "running" / "provenance.py", "a") as file:
            file.write(EDIT)

    def start(self, words: str) -> subprocess.Popen[str]:
        """`orch WORDS --on FILE`, its process id left in a file."""
        environment = f"PYTHONPATH={self.folder}/src {COMMIT_VARIABLE}=c0ffee+ PYTHONUNBUFFERED=1"
        command = f"{environment} python -m orch {words} --on {self.file}"
        return self.hosts.login(self.hosts.outside, f"cd {self.folder}; echo $$ > ~/pid; exec env {command}")

    def orch(self, words: str, expect: int = 0) -> str:
        process = self.start(words)
        output, errors = process.communicate(timeout=120)
        assert process.returncode == expect, output + errors
        return output + errors

    def signal(self, name: str) -> None:
        self.hosts.run(self.hosts.outside, f"kill -{name} $(cat ~/pid)")

    def tunnels(self) -> list[str]:
        """What is left there of ways to the head."""
        lines = self.hosts.run(self.hosts.outside, "ps -A -o args").splitlines()
        return [line for line in lines if line.startswith("ssh ")]

    def rows(self) -> Counter[str]:
        """Every trials row in every part, counted without any of the store's own rules."""
        parts = Path(self.store.uri, "trials").rglob("*.parquet")
        return Counter(trial for part in parts for trial in pq.read_table(part)["trial_id"].to_pylist())


def asked_for(name: str, *where: str) -> Counter[str]:
    named = name_sweeps([name])
    names, catalogue = named.names, named.catalogue
    return Counter(planned.id for planned in make_plan(names, "smoke", where, None, catalogue=catalogue).trials)


@pytest.fixture(scope="module")
def outside(cluster: Cluster) -> Iterator[Outside]:
    folder = tempfile.mkdtemp(prefix="orch-on-", dir="/var/tmp")  # /tmp is every host's own
    yield Outside(cluster, Path(folder, "runs"))
    shutil.rmtree(folder)


def test_a_sweep_on_a_store_that_another_works_on_is_refused_in_so_many_words(outside: Outside):
    with Lease(outside.store, "somebody else's"):
        told = outside.orch("sweep frozen-parity --scale smoke", expect=2)
    assert "is being worked on by" in told
    assert "somebody else's" in told
    assert not outside.rows()


def test_a_sweep_outlives_the_client_that_submitted_it(outside: Outside):
    where = "additive=none,constant"
    client = outside.start(f"sweep frozen-parity --scale smoke --where {where}")
    wait_for(lambda: outside.store.read("attempts").num_rows or client.poll() is not None)
    outside.signal("KILL")
    client.communicate(timeout=30)
    assert wait_for(lambda: not outside.tunnels(), seconds=30)
    status = json.loads(outside.orch("status --json"))
    shown = [(sweep["name"], sweep["where"], sweep["total"]) for sweep in status["sweeps"]]
    assert shown == [("frozen-parity", where, 4)]
    told = outside.orch("logs --follow")
    assert "running on the Ray cluster at" in told
    assert "4 trials finished" in told
    assert outside.rows() == asked_for("frozen-parity", where)


def test_the_workers_run_the_project_as_it_stands_outside(outside: Outside):
    found = outside.store.read("trials", ["packages", "git_commit", "git_dirty"]).to_pylist()
    assert found
    assert all("click" in json.loads(row["packages"]) for row in found)
    assert {(row["git_commit"], row["git_dirty"]) for row in found} == {("c0ffee", True)}


def test_a_sweep_of_ones_own_runs_while_terminals_come_and_go(outside: Outside):
    sweep, where = ROOT / "examples" / "gated_sweep.py", "task=resettable_addition,modulus=2"
    before = outside.rows()
    told = outside.orch(f"sweep {sweep} --scale smoke --where {where} --detach")
    assert re.search(r"^\d of 4 done", told, re.MULTILINE)
    assert "the sweep continues without this terminal" in told
    client = outside.start("logs --follow")
    assert client.stdout is not None
    assert "running on the Ray cluster at" in client.stdout.readline()
    outside.signal("INT")
    _, errors = client.communicate(timeout=30)
    assert client.returncode == 130
    assert f"orch logs --on {outside.file} --follow shows it again" in errors
    assert "4 trials finished" in outside.orch("logs --follow")
    assert outside.rows() - before == asked_for(str(sweep), where)
    assert outside.orch("failures") == "no trial has failed\n"


def test_what_is_unfinished_is_resumed_from_outside(outside: Outside):
    assert "nothing to do: every trial has its result" in outside.orch("resume")
