"""A Ray cluster on hosts of this machine, brought up as its user would: `ray up` with a filled-in launcher file."""

import json
import os
import shlex
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.filled import LOCAL, replace
from tests.cluster.hosts import ROOT, Hosts, missing

UV = f"""#!/bin/sh
# The hosts have no way to the world: the environment that runs the tests stands in for the one to be installed.
[ "$1" = venv ] || exit 0
mkdir -p .venv
cp {sys.prefix}/pyvenv.cfg .venv
ln -sfn {sys.prefix}/bin {sys.prefix}/lib .venv
"""

ALIVE = """
import json, ray, time
ray.init(log_to_driver=False)
until = time.monotonic() + {seconds}
while True:
    alive = sorted(node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"])
    if alive == {wanted} or time.monotonic() > until:
        break
    time.sleep(0.2)
print(json.dumps(alive))
"""


class Cluster:
    """A Ray cluster on hosts, all of them in it but the one outside."""

    def __init__(self, hosts: Hosts):
        self.hosts = hosts
        self.members = sorted([hosts.head, *hosts.workers])
        self.store = str(hosts.folder / "runs")
        self.file = hosts.folder / "local.yaml"
        self.file.write_text(self._filled_in())
        for name in hosts.addresses:
            uv = hosts.home(name) / ".local" / "bin" / "uv"
            uv.parent.mkdir(parents=True)
            uv.write_text(UV)
            uv.chmod(0o755)
            with open(hosts.home(name) / ".bashrc", "a") as file:
                file.write(f"export PYTHONPATH=$HOME/orch/src:{ROOT}\n")

    def _filled_in(self) -> str:
        hosts = self.hosts
        workers = ", ".join(hosts.addresses[name] for name in hosts.workers)
        edits = {
            "head_ip: EDIT-ME": f"head_ip: {hosts.addresses[hosts.head]}",
            "worker_ips: [EDIT-ME]": f"worker_ips: [{workers}]",
            "ssh_user: EDIT-ME": f"ssh_user: {hosts.user}",
            "ssh_private_key: ~/.ssh/EDIT-ME": f"ssh_private_key: {hosts.key}",
            "ORCH_STORE=/EDIT-ME/runs": f"ORCH_STORE={self.store}",
        }
        return replace(LOCAL.read_text(), edits)

    def up(self) -> None:
        """`ray up`, from outside and from the project's folder."""
        self.hosts.run(self.hosts.outside, "ray get-auth-token --generate")
        self.hosts.run(self.hosts.outside, f"cd {ROOT} && ray up --yes {self.file} 2>&1")

    def down(self) -> None:
        self.hosts.run(self.hosts.outside, f"cd {ROOT} && ray down --yes {self.file} 2>&1")

    def alive(self, wanted: list[str], seconds: float = 90.0) -> list[str]:
        """The names of the machines in the cluster, as its head knows them: as soon as they are those wanted, or the
        time is up."""
        return self.python(ALIVE.format(wanted=sorted(wanted), seconds=seconds), seconds + 30.0)

    def python(self, code: str, seconds: float = 60.0) -> Any:
        """The JSON that a program on the head prints last: Ray may have things to say before."""
        command = f"python -c {shlex.quote(code)} 2> /dev/null"
        return json.loads(self.hosts.run(self.hosts.head, command, seconds=seconds).splitlines()[-1])

    def log(self) -> str:
        """The last that the head's autoscaler has to say, for when things go wrong."""
        return self.hosts.run(self.hosts.head, "tail -n 40 /tmp/ray/session_latest/logs/monitor.*")


ENVIRONMENT = {
    "ORCH_TRAINING": "tests.engine.faults:open_training",
    "ORCH_FAULTS": json.dumps([["slow 3", {}]]),
    "RAY_OVERRIDE_RESOURCES": json.dumps({"CPU": 1}),
    "RAY_USAGE_STATS_ENABLED": "0",
    # A machine or a head that has gone silent is given up after seconds; it would be a minute.
    "RAY_health_check_failure_threshold": "3",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
}
"""Every host has one CPU and trains slowly."""


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    """A head and two workers, all of them up. Bringing them up is dear, so several files of tests share them."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    with Hosts(num_workers=2, environment=ENVIRONMENT) as hosts:
        found = Cluster(hosts)
        found.up()
        assert found.alive(found.members) == found.members, found.log()
        yield found


@pytest.fixture
def aws_account(tmp_path, monkeypatch) -> Iterator[None]:
    """An empty account of AWS, a home, and the project as the current folder."""
    import boto3
    from moto import mock_aws

    from orch.cluster.amazon import cluster, quotas
    from tests.cluster.aws_account import session

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(cluster, "SPREAD_SECONDS", 0.0)
    monkeypatch.setattr(quotas, "_quotas", lambda account: [])  # the stand-in knows none
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    settings = {"HOME": str(tmp_path), "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        boto3.session, "Session", lambda region_name: session(region_name, os.environ.get("AWS_ACCESS_KEY_ID"))
    )
    with mock_aws():
        yield
