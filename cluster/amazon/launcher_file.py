"""The launcher file of a cluster on AWS: cluster/a100.yaml with every edit made."""

import dataclasses
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from orch.cluster.launcher import PACKAGED, load_config
from orch.core.atomic_write import write_atomically
from orch.core.errors import OrchError

TEMPLATE = PACKAGED / "a100.yaml"
SEAL = "# Unedited: "
"""Begins the last line, which has a hash of the others: an edited file is never overwritten."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """The machines and settings to write into a launcher file."""

    cluster: str
    region: str
    max_workers: int
    instance_type: str
    num_cpus: int
    num_gpus: int
    spot: bool
    image: str
    root_device: str
    group_id: str
    subnet_ids: Sequence[str]
    head_profile: str
    worker_profile: str
    key_name: str
    private_key: str
    store: str


def launcher_text(contents: Contents, output: Path) -> str:
    """Make every edit in the shipped file."""
    text = TEMPLATE.read_text()
    first = text.index("cluster_name:")
    gpus = f"{contents.num_gpus} GPUs" if contents.num_gpus else "no GPU"
    text = (
        f"# {contents.instance_type} on AWS ({gpus} each), written by orch cluster init. From the project's folder:\n"
        f"#   ray up {output} && orch sweep all --on {output}\n"
        f"# No port is open but ssh. Idle workers are ended; the head stays until `ray down {output}`,\n"
        f"# and the bucket, the roles, the security group and the key until `orch cluster destroy {output}`.\n"
    ) + text[first:]
    resources = f"CPU: {contents.num_cpus}" + (f", GPU: {contents.num_gpus}" if contents.num_gpus else "")
    edits = {
        r"cluster_name: orch\b": f"cluster_name: {contents.cluster}",
        r"max_workers: 4\b": f"max_workers: {contents.max_workers}",
        r"(machines at a time), of eight A100s each;": r"\1;",
        r"region: us-east-1\b": f"region: {contents.region}",
        r"(ssh_user: ubuntu)\b.*": rf"\1\n  ssh_private_key: {contents.private_key}",
        r"ami-EDIT-ME": contents.image,
        r"/dev/sda1": contents.root_device,
        r"( +)(SecurityGroupIds:) \[sg-EDIT-ME\]": (
            rf"\1\2 [{contents.group_id}]\n\1SubnetIds: [{', '.join(contents.subnet_ids)}]"
            rf"\n\1KeyName: {contents.key_name}"
        ),
        r"p4d\.24xlarge": contents.instance_type,
        r"(your quota for) p4d\b": rf"\1 {contents.instance_type.partition('.')[0]}",
        r"EDIT-ME-worker": contents.worker_profile,
        r"EDIT-ME-head": contents.head_profile,
        r"\{CPU: 96, GPU: 8\}": f"{{{resources}}}",
        r"s3://EDIT-ME/runs": contents.store,
        r"cluster/a100\.yaml": str(output),
    }
    if not contents.spot:
        edits[r"(?ms)^  spot:.*?(?=^  on_demand:)"] = ""
    for before, after in edits.items():
        text, count = re.subn(before, after, text)
        assert count, f"{TEMPLATE} has no {before}"
    return f"{text}{_seal(text)}"


def check_replaceable(path: Path, cluster: str, region: str) -> None:
    """Raise an error unless the file is missing, or was written by this module for the same cluster and not edited."""
    if not path.exists():
        return
    text, _, _ = path.read_text().rpartition(SEAL)
    if not text or f"{text}{_seal(text)}" != path.read_text():
        raise OrchError(
            f"{path} exists and was written or edited by hand: name another file with --output, or move it away"
        )
    config = load_config(path)
    named = config["cluster_name"], config["provider"]["region"]
    if named != (cluster, region):
        raise OrchError(
            f"{path} is of the cluster {named[0]} in {named[1]}: add --name {named[0]} --region {named[1]}, or name"
            " another file with --output"
        )


def write_launcher(path: Path, text: str) -> None:
    """Write the file whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())


def _seal(text: str) -> str:
    return f"{SEAL}{hashlib.sha256(text.encode()).hexdigest()[:16]}\n"
