"""The manifest for KubeRay, as `orch cluster check` sees it, and the image, whose versions are those of setup.sh."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from orch.cluster.check import LauncherReport, check_launcher
from orch.cluster.head import HeadUnreachable, find_head
from orch.cluster.rules import NEEDED
from orch.cluster.versions import find_versions
from tests.cluster.filled import replace
from tests.cluster.hosts import ROOT
from tests.command_line import orch

MANIFEST = ROOT / "cluster" / "kuberay.yaml"
DOCKERFILE = (ROOT / "cluster" / "Dockerfile").read_text()
SETUP = (ROOT / "cluster" / "setup.sh").read_text()
EDITS = {
    "serviceAccountName: EDIT-ME": "serviceAccountName: orch",
    "EDIT-ME/orch": "registry/orch",
    "s3://EDIT-ME": "s3://results",
}


def checked(folder: Path, *changes: tuple[str, str]) -> LauncherReport:
    """Check the manifest with its placeholders filled in and these changes."""
    text = replace(MANIFEST.read_text(), EDITS)
    for change in changes:
        text = replace(text, dict([change]))
    path = folder / MANIFEST.name
    path.write_text(text)
    return check_launcher(path)


def test_the_manifest_is_right_once_it_is_edited(tmp_path):
    report = checked(tmp_path)
    assert (report.errors, report.warnings) == ((), ())
    said = orch("cluster", "check", tmp_path / MANIFEST.name).stdout
    assert "up to 8 workers with 1 GPU each" in said


def test_every_edit_not_made_yet_is_named():
    errors = check_launcher(MANIFEST).errors
    assert [text.split()[0] for text in errors] == ["serviceAccountName", "image", "ORCH_STORE"]


def test_a_cluster_without_a_job_is_checked_the_same_way(tmp_path):
    config = yaml.safe_load(replace(MANIFEST.read_text(), EDITS))
    alone = config | {"kind": "RayCluster", "spec": config["spec"]["rayClusterSpec"]}
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(alone))
    report = check_launcher(tmp_path / "cluster.yaml")
    assert (report.errors, report.warnings) == ((), ())


BROKEN: dict[str, tuple[Sequence[tuple[str, str]], str]] = {
    "another kind": ([("kind: RayJob", "kind: RayJbo")], "the kind RayJbo runs no sweep: did you mean RayJob?"),
    "an old interface": ([("ray.io/v1\n", "ray.io/v1alpha1\n")], "apiVersion is ray.io/v1alpha1: use ray.io/v1"),
    "another Ray": ([("rayVersion: 2.60.0", "rayVersion: 2.40.0")], "rayVersion is 2.40.0 and this environment has"),
    "a misspelt field": ([("maxReplicas: 8", "maxReplica: 8")], "has no maxReplicas: did you mean it by maxReplica?"),
    "a question": ([(" --yes", "")], "the entrypoint may ask a question that nobody can answer: add --yes"),
    "no token": ([("mode: token", "mode: disabled")], "Ray's token authentication is off on the head"),
    "a key in the file": (
        [("- {name: ORCH_RECLAIM_FILE,", "- {name: AWS_SECRET_ACCESS_KEY, value: abc}\n- {name: ORCH_RECLAIM_FILE,")],
        "has AWS_SECRET_ACCESS_KEY as plain text in the file",
    ),
    "an open head": (
        [("headGroupSpec:\n", "headGroupSpec:\n      serviceType: LoadBalancer\n")],
        "ports would be open outside the cluster",
    ),
    "a head that trains": ([('num-cpus: "0"', 'num-cpus: "4"')], "the head would run trials and starve the driver"),
    "a moving image": ([("orch:0.2.0-cuda", "orch:latest")], "the image registry/orch:latest changes under its name"),
    "two images": ([("image: *image", "image: registry/orch:0.1.0")], "has another image than the head"),
    "a folder of a pod": ([("s3://results/runs", "/runs")], "ORCH_STORE=/runs is a different folder in every pod"),
    "half a GPU": ([("memory: 64Gi, nvidia.com/gpu: 1}\n", "memory: 64Gi, nvidia.com/gpu: 0.5}\n")], "has 0.5 GPUs"),
    "more GPUs than allowed": (
        [("requests: {cpu: \"8\", memory: 64Gi, nvidia.com/gpu: 1}", "requests: {nvidia.com/gpu: 2}")],
        "requests 2 GPUs and is limited to 1",
    ),
    "no way to the bucket": (
        [("serviceAccountName: orch", "serviceAcountName: orch")],
        "the head may not reach the store s3://results/runs: set serviceAccountName",
    ),
    "no memory": ([("limits: {cpu: \"8\", memory: 64Gi,", "limits: {cpu: \"8\",")], "has no limits of memory"),
    "no first pod": ([("minReplicas: 1 ", "minReplicas: 0 ")], "starts with no pod"),
    "fewer than the least": ([("maxReplicas: 8", "maxReplicas: 0")], "has minReplicas 1 and maxReplicas 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_named_with_its_remedy(name, tmp_path):
    changes, said = BROKEN[name]
    text = [(before, after.replace("\n- ", "\n                  - ")) for before, after in changes]
    errors = checked(tmp_path, *text).errors
    assert any(said in each for each in errors), errors
    assert all(":" in each for each in errors), "each names a remedy"


def test_an_eviction_without_notice_is_a_warning(tmp_path):
    report = checked(tmp_path, ("touch /tmp/orch-reclaimed;", ""))
    assert report.errors == ()
    assert "is evicted loses a minute of training" in report.warnings[0]


def test_a_pod_that_is_ended_before_its_trials_are_handed_over_is_a_warning(tmp_path):
    report = checked(tmp_path, ("terminationGracePeriodSeconds: 60", "terminationGracePeriodSeconds: 20"))
    assert report.errors == ()
    assert "terminationGracePeriodSeconds 20, which ends its preStop of 30 s early" in report.warnings[0]


def test_keys_from_a_secret_are_a_way_to_the_bucket(tmp_path):
    config = yaml.safe_load(replace(MANIFEST.read_text(), EDITS))
    cluster = config["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        del pod["serviceAccountName"]
        secret = {"valueFrom": {"secretKeyRef": {"name": "keys", "key": "secret"}}}
        pod["containers"][0]["env"].append({"name": "AWS_SECRET_ACCESS_KEY", **secret})
    path = tmp_path / "kuberay.yaml"
    path.write_text(yaml.safe_dump(config))
    assert check_launcher(path).errors == ()


def test_on_names_the_way_that_works(tmp_path):
    with pytest.raises(HeadUnreachable, match="kubectl create -f"):
        find_head(checked(tmp_path).launcher)


# The image


def stages() -> dict[str, str]:
    """Return the instructions of each target of the Dockerfile."""
    found = re.split(r"^FROM (?=.* AS )", DOCKERFILE, flags=re.MULTILINE)[1:]
    return {part.split(maxsplit=3)[2]: part for part in found}


def test_the_image_has_the_versions_of_the_machines_that_ray_up_starts():
    setup = find_versions(SETUP, None)
    assert re.search(r"^FROM python:(\d\.\d+)-", DOCKERFILE, re.MULTILINE)[1] == setup.python
    assert re.search(r"astral-sh/uv:([\d.]+)", DOCKERFILE)[1] == re.search(r"/uv/([\d.]+)/", SETUP)[1]
    assert re.search(r"rayVersion: ([\d.]+)", MANIFEST.read_text())[1] == setup.ray
    assert {name: re.findall(r"bash cluster/setup.sh (\w+)", text) for name, text in stages().items()} == {
        "base": [],
        "cpu": ["cpu"],
        "cuda": ["cuda"],
    }, "nothing is installed but by that script"
    assert "pip install" not in DOCKERFILE


def test_no_mount_leaves_a_folder_of_root_in_the_home():
    """BuildKit makes mount points, and the folders above them, as root."""
    mounts = re.findall(r"--mount=type=cache,target=(\S+),uid=1000 UV_CACHE_DIR=(\S+)", DOCKERFILE)
    assert len(mounts) == DOCKERFILE.count("--mount=") == 2
    assert all(target == cache and not target.startswith("/home") for target, cache in mounts)


def test_the_image_has_every_folder_of_the_package_and_nothing_private():
    copied = re.findall(r"^COPY --chown=ray (.+) \S+$", DOCKERFILE, re.MULTILINE)
    sources = [word for line in copied for word in line.split()]
    assert set(NEEDED) | {"pyproject.toml", "constraints.txt", "README.md", "LICENSE"} == set(sources)
    assert all((ROOT / name).exists() for name in sources)


UV = """#!/bin/sh
echo "$@" >> {log}
[ "$1" != venv ] || mkdir -p .venv
"""


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_the_set_up_installs_what_the_versions_say(kind, tmp_path):
    """The script is run, with a stand-in for uv that notes what it was asked for."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "cluster").mkdir()
    (tmp_path / "bin" / "uv").write_text(UV.format(log=tmp_path / "log"))
    (tmp_path / "bin" / "uv").chmod(0o755)
    (tmp_path / "cluster" / "setup.sh").write_text(SETUP)
    (tmp_path / "constraints.txt").write_text((ROOT / "constraints.txt").read_text())
    environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    script = ["bash", str(tmp_path / "cluster" / "setup.sh"), kind]
    subprocess.run(script, env=environment, check=True, capture_output=True)
    asked = (tmp_path / "log").read_text().splitlines()
    assert asked[0] == "venv --clear --python 3.11"
    assert "ray[default,tune]==2.60.0 torch==2.10.0" in asked[1]
    assert ("--torch-backend cpu" in asked[1]) == (kind == "cpu")
    kernels = [line for line in asked[2:] if "mamba_ssm" in line and "causal_conv1d" in line]
    assert len(asked[2:]) == len(kernels) == (kind == "cuda")
    assert "torch=" not in (tmp_path / ".venv" / "constraints.txt").read_text(), "the set's own torch is meant"
