"""AWS on this machine: an EC2 that starts no machines, and in place of a machine a folder that is its home."""

import os
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3

from tests.cluster.hosts import ROOT

REGION = "us-east-1"

SSH = """#!/bin/bash
# Whatever machine is meant, its home is one folder here: commands run in it, and rsync copies to it.
while [[ $1 == -* ]]; do
  case $1 in -[ioLl]) shift 2 ;; *) shift ;; esac
done
shift
cd {home} && HOME={home} exec env --unset=AWS_ENDPOINT_URL bash -c "$*"
"""

UV = """#!/bin/bash
# Nothing is installed: the calls are kept, and a `ray` that keeps its own.
echo "uv $*" >> ~/calls
if [[ $1 == venv ]]; then
  mkdir -p .venv/bin
  printf '%s\\n' '#!/bin/bash' 'echo "ray $*" >> ~/calls' 'env > ~/ray-$1' > .venv/bin/ray
  chmod +x .venv/bin/ray
fi
"""


ORCH = """
from orch.cli import main
from orch.cluster.amazon import cluster, quotas
cluster.SPREAD_SECONDS, quotas._quotas = 0.0, lambda account: []
main()
"""
"""The command `orch` where nothing has to spread and no quotas are known."""


class Amazon:
    """An account with a network and an image, and the launcher file that `orch cluster init aws` wrote for it."""

    def __init__(self, folder: Path, endpoint: str):
        # The stand-in's memory is the process's: what an earlier one was told is still there.
        urllib.request.urlopen(f"{endpoint}/moto-api/reset", data=b"").close()
        self.folder = folder
        self.home, self.head_home = folder / "home", folder / "head"
        self.environment = os.environ | {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test-key",
            "AWS_SECRET_ACCESS_KEY": "test-secret",
            "AWS_EC2_METADATA_DISABLED": "true",
            "HOME": str(self.home),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "RAY_USAGE_STATS_ENABLED": "0",
            "TMPDIR": str(folder),
        }
        secrets = {"aws_access_key_id": "test-key", "aws_secret_access_key": "test-secret"}
        self.ec2: Any = boto3.client("ec2", REGION, endpoint_url=endpoint, **secrets)
        self.iam: Any = boto3.client("iam", REGION, endpoint_url=endpoint, **secrets)
        self.image = self.ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        self.file = folder / "aws.yaml"
        self.orch("init", "aws", "--image", self.image, "--ssh-from", "203.0.113.7", "--output", str(self.file))
        (group,) = self.ec2.describe_security_groups(GroupNames=["orch"])["SecurityGroups"]
        self.group = group["GroupId"]
        self._write(folder / "bin" / "ssh", SSH.format(home=shlex.quote(str(self.head_home))))
        self._write(self.head_home / ".local" / "bin" / "uv", UV)
        self.token = (self.home / ".ray" / "auth_token").read_text()

    def orch(self, *words: str) -> str:
        """`orch cluster`, as a user would give it in the project's folder."""
        return self._run(sys.executable, "-c", ORCH, "cluster", *words)

    def ray(self, *words: str) -> str:
        """The `ray` command, as a user would give it in the project's folder."""
        command = [str(Path(sys.executable).parent / "ray"), *words, "--yes", "--no-config-cache", str(self.file)]
        if words[0] == "down":
            command.remove("--no-config-cache")
        return self._run(*command)

    def _run(self, *command: str) -> str:
        found = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=240, start_new_session=True
        )
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout

    def machines(self) -> Iterator[dict[str, Any]]:
        for reservation in self.ec2.describe_instances()["Reservations"]:
            for instance in reservation["Instances"]:
                if instance["State"]["Name"] in ("pending", "running"):
                    yield instance | {"tags": {tag["Key"]: tag["Value"] for tag in instance["Tags"]}}

    def calls(self) -> list[str]:
        """What was run on the head: the calls of `uv` and `ray`."""
        return (self.head_home / "calls").read_text().splitlines()

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o700)
