"""Rules for any cluster: compatible versions, a store that all machines reach, the code shipped, access closed."""

import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from orch.cluster.launcher import Launcher
from orch.cluster.placeholders import is_placeholder
from orch.cluster.problem import Problem, error, warning

LOOPBACK = ("127.0.0.1", "localhost", "::1")
NOT_TO_SHIP = (".git", ".venv", "runs")
NEEDED = ("analysis", "cluster", "models", "orchestrator", "src", "tasks")
"""Folders of the project that make up the package."""


def check_versions(launcher: Launcher) -> Iterator[Problem]:
    """Compare the cluster's versions with this environment's, and the pinned versions with each other."""
    versions = launcher.versions
    ray, python = importlib.metadata.version("ray"), f"{sys.version_info.major}.{sys.version_info.minor}"
    if versions.ray_nightly:
        yield error(f"the setup installs a nightly Ray: install ray[default,tune]=={ray}, as here")
    elif versions.ray is None:
        yield error(f"the setup does not pin Ray: install ray[default,tune]=={ray}, as here")
    elif versions.ray != ray:
        yield error(f"the cluster would have Ray {versions.ray} and this environment has {ray}: make them equal")
    if versions.python is None:
        yield error(f"the setup does not name a Python: make the environment with Python {python}, as here")
    elif versions.python != python:
        yield error(
            f"the cluster would have Python {versions.python} and this environment has {python}: make them equal"
        )
    yield from _check_torch(launcher)
    if launcher.provider == "aws" and importlib.util.find_spec("boto3") is None:
        yield error("ray up reaches AWS through boto3, which is not installed here: pip install boto3")


def _check_torch(launcher: Launcher) -> Iterator[Problem]:
    from packaging.requirements import Requirement

    versions = launcher.versions
    if versions.torch is None:
        yield error("the setup does not pin torch: install one version that has wheels of mamba-ssm")
        return
    for text in importlib.metadata.requires("orch") or ():
        required = Requirement(text)
        if required.name == "torch" and not required.specifier.contains(versions.torch, prereleases=True):
            yield error(
                f"the cluster would have torch {versions.torch}, and orch needs {required.specifier}: pin another"
            )
    for wheel in versions.wheels:
        if wheel.torch != ".".join(versions.torch.split(".")[:2]):
            built = f"the wheel of {wheel.package} is built for torch {wheel.torch}"
            yield error(f"{built} and the cluster would have torch {versions.torch}: make them equal")
        if versions.python is not None and wheel.python != versions.python:
            built = f"the wheel of {wheel.package} is built for Python {wheel.python}"
            yield error(f"{built} and the cluster would have Python {versions.python}: make them equal")
    if versions.kernels_from_source:
        yield error(
            "the setup compiles mamba-ssm or causal-conv1d on every machine: install their published wheels by URL"
        )


def check_store(launcher: Launcher) -> Iterator[Problem]:
    """Report a store that machines cannot share: a folder differs on each machine unless it is mounted."""
    store = launcher.store
    if store is None:
        yield error(
            "ORCH_STORE is not set: export it in the setup of the machines, such as ORCH_STORE=s3://bucket/runs"
        )
        return
    if is_placeholder(store) or ("://" in store and not store.startswith("file://")):
        return
    folder = store.removeprefix("file://")
    if launcher.provider in ("local", "slurm"):
        shared = folder.startswith("/") and Path(folder).parts[1:2] not in (("tmp",), ("dev",), ("run",))
    else:
        shared = folder.startswith("/") and _mounted(folder, launcher.setup)
    if not shared:
        yield error(
            f"ORCH_STORE={store} is a different folder on every machine: use s3://bucket/runs or a shared folder"
        )
    elif launcher.provider == "local":
        yield warning(f"ORCH_STORE={store} must be the same mounted folder on every machine: else use s3://bucket/runs")


def _mounted(folder: str, setup: str) -> bool:
    places = re.findall(r"\bmount\b.*\s(/\S+)\s*$", setup, re.MULTILINE)
    return any(Path(folder).is_relative_to(place) for place in places)


def check_access(launcher: Launcher) -> Iterator[Problem]:
    """Report missing protection: anyone who reaches Ray can run code, so a token and a local dashboard are needed."""
    for part, start in (("head", launcher.head_start), ("workers", launcher.worker_start)):
        if not re.search(r"\bRAY_AUTH_MODE=token\b", f"{launcher.setup}\n{start}") or "RAY_AUTH_MODE=disabled" in start:
            yield error(f"Ray's token authentication is off on the {part}: start Ray there with RAY_AUTH_MODE=token")
    if re.search(r"RAY_AUTH_TOKEN=\S|\bAKIA[0-9A-Z]{16}\b|aws_secret_access_key", launcher.commands, re.IGNORECASE):
        yield error(
            "a secret stands in the commands: ship ~/.ray/auth_token by file_mounts, and give roles instead of keys"
        )
    for host in re.findall(r"--dashboard-host[=\s]+(\S+)", launcher.commands):
        if host not in LOOPBACK:
            listening = f"the dashboard and the job server would listen on {host} and run whatever anybody sends"
            yield error(f"{listening}: use --dashboard-host=127.0.0.1")
    if launcher.provider == "slurm":
        return
    if not any(remote.endswith(".ray/auth_token") for remote in launcher.file_mounts):
        yield error("the machines do not get Ray's token: add ~/.ray/auth_token: ~/.ray/auth_token to file_mounts")
    key = launcher.ssh_private_key
    if key and not is_placeholder(key) and not Path(key).expanduser().is_file():
        yield error(f"the ssh key {key} does not exist here: name one that does")


def check_shipping(launcher: Launcher) -> Iterator[Problem]:
    """Report a project that is not shipped completely, and large folders that are shipped with it."""
    if launcher.provider == "slurm":
        return
    shipped = set()
    for remote, local in launcher.file_mounts.items():
        source = Path(local).expanduser()
        if not source.exists():
            is_token = remote.endswith("auth_token")
            remedy = "run ray get-auth-token --generate" if is_token else "run from the project's folder"
            yield error(f"file_mounts ships {local}, which does not exist here: {remedy}")
        shipped |= {source.name} | {folder for folder in NEEDED if (source / folder).exists()}
        heavy = [name for name in NOT_TO_SHIP if (source / name).exists() and name not in launcher.excluded]
        if heavy:
            yield error(f"file_mounts ships {local} with its {', '.join(heavy)}: name them in rsync_exclude")
    if missing := [folder for folder in NEEDED if folder not in shipped]:
        yield error(
            f"the project is not shipped to the machines ({', '.join(missing)}): add its folders to file_mounts, as in"
            " cluster/a100.yaml"
        )


def check_threads(launcher: Launcher) -> Iterator[Problem]:
    """Report workers on which every trial would use all CPU cores."""
    if not re.search(r"\bOMP_NUM_THREADS=1\b", f"{launcher.setup}\n{launcher.worker_start}"):
        yield warning(
            "OMP_NUM_THREADS=1 is not set on the workers, so trials would fight for CPUs: set it where Ray starts"
        )
