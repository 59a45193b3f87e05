"""The shipped launcher files with their edits made."""

from collections.abc import Mapping

from tests.cluster.hosts import ROOT

A100 = ROOT / "cluster" / "a100.yaml"
GOOGLE = ROOT / "cluster" / "gcp_a100.yaml"
LOCAL = ROOT / "cluster" / "local.yaml"
SLURM = ROOT / "cluster" / "slurm.sh"

EDITS = {
    A100: {
        "ami-EDIT-ME": "ami-0123456789abcdef0",
        "sg-EDIT-ME": "sg-0123456789abcdef0",
        "EDIT-ME-worker": "orch-worker",
        "EDIT-ME-head": "orch-head",
        "s3://EDIT-ME/runs": "s3://orch-results/runs",
    },
    GOOGLE: {
        "project_id: EDIT-ME": "project_id: my-project",
        "subnetworks/EDIT-ME": "subnetworks/cluster",
        "images/EDIT-ME": "images/common-cu128-v20260901",
        "email: EDIT-ME": "email: worker@my-project.iam.gserviceaccount.com",
        "gs://EDIT-ME/runs": "gs://orch-results/runs",
    },
    LOCAL: {
        "head_ip: EDIT-ME": "head_ip: 10.0.0.1",
        "worker_ips: [EDIT-ME]": "worker_ips: [10.0.0.2, 10.0.0.3]",
        "ssh_user: EDIT-ME": "ssh_user: ada",
        "~/.ssh/EDIT-ME": "~/.ssh/cluster",
        "/EDIT-ME/runs": "s3://orch-results/runs",
    },
    SLURM: {"--partition=EDIT-ME": "--partition=gpu", "/EDIT-ME/runs": "/shared/runs"},
}


def replace(text: str, edits: Mapping[str, str]) -> str:
    for before, after in edits.items():
        assert before in text, before
        text = text.replace(before, after)
    return text
