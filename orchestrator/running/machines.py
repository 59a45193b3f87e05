"""The machines to run on: connecting to a Ray cluster, or starting Ray here, and finding their resources."""

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import ray

from orch.core.counted import counted
from orch.core.errors import OrchError
from orch.core.interruption import leaving_at_once
from orch.running.autoscaling import BOOTSTRAP, ClusterLimits
from orch.running.local_ray import local_ray
from orch.running.ray_compat import considerate_start, shut_down
from orch.usercode import UserCode

JOIN_SECONDS = 60.0


@dataclass(frozen=True)
class Machines:
    """The machines to run on. A cluster that can grow counts at its full size."""

    cpus: int
    gpus: int
    nodes: int
    """The number of machines that are alive now."""
    address: str | None
    """The cluster's address; None for a Ray that was started on this machine."""

    gpus_per_trial: float = 1.0
    device: str = "cpu"
    may_grow: bool = False
    """Whether the cluster may get more machines than are counted here, because its limits are not known."""

    @property
    def slots(self) -> int:
        """The number of units that run at once."""
        return max(1, min(self.cpus, int(self.gpus / self.gpus_per_trial)) if self.device == "cuda" else self.cpus)

    @property
    def description(self) -> str:
        parts = [counted(self.cpus, "CPU core")]
        if self.gpus:
            parts.append(counted(self.gpus, "GPU"))
        if not self.address:
            return f"this machine only ({', '.join(parts)})"
        nodes = f"{counted(self.nodes, 'node')} now"
        return f"the Ray cluster at {self.address} ({nodes}, in all up to {', '.join(parts)})"


def on_cluster() -> bool:
    """Return whether `connected` would connect to a cluster instead of starting Ray on this machine."""
    return bool(os.environ.get("RAY_ADDRESS")) or ClusterLimits.of_this_head() is not None


@contextmanager
def connected(num_cpus: int | None = None, gpus_per_trial: float = 1.0, device: str = "auto") -> Iterator[Machines]:
    """Connect to the cluster that RAY_ADDRESS names or whose head is this machine, or start Ray on this machine.

    Trials train on `device`; auto uses GPUs where there are any. At the end the cluster is left, or Ray is stopped.
    """
    # One thread per CPU given to a trial, for every library that would otherwise take all cores.
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    limits = ClusterLimits.of_this_head()
    address = os.environ.get("RAY_ADDRESS") or ("auto" if limits else None)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address:
        with _cluster(address, limits, **quiet) as found:
            machines = _machines(found, limits or ClusterLimits(), gpus_per_trial, device)
            yield replace(machines, may_grow=limits is None)
    else:
        with local_ray(num_cpus, **quiet):
            yield _machines(None, ClusterLimits(), gpus_per_trial, device)


@contextmanager
def _cluster(address: str, limits: ClusterLimits | None, **options: Any) -> Iterator[str]:
    """Connect to a cluster, yield the address of its control store, and leave it at the end."""
    try:
        try:
            with leaving_at_once(), considerate_start(only_loopback=False):
                ray.init(address=address, **options)
        except ConnectionError as error:
            if "RAY_ADDRESS" not in os.environ:
                raise OrchError(
                    f"this machine was the head of a cluster that is down: ray up starts it again; to run on this"
                    f" machine alone, remove {BOOTSTRAP}"
                ) from None
            raise OrchError(
                f"no Ray cluster answers at RAY_ADDRESS={address} ({error}): start it, or unset it"
            ) from None
        _wait_for_own_machines(limits)
        yield ray.get_runtime_context().gcs_address
    finally:
        shut_down()


def _wait_for_own_machines(limits: ClusterLimits | None) -> None:
    """Wait until the user's own machines have joined, some seconds after `ray up`; their GPUs decide the device."""
    until = time.monotonic() + JOIN_SECONDS
    while limits and time.monotonic() < until:
        if len(_live_nodes()) > limits.num_own:  # these machines, and the head
            break
        time.sleep(0.5)


def _machines(address: str | None, limits: ClusterLimits, gpus_per_trial: float, device: str) -> Machines:
    cluster_resources: Any = ray.cluster_resources
    found = cluster_resources()
    nodes = [node["Resources"] for node in _live_nodes()]
    cpus, gpus = (max(int(found.get(kind, 0)), limits.total(kind)) for kind in ("CPU", "GPU"))
    if device == "auto":
        device = "cuda" if gpus else "cpu"
    if device == "cuda":
        if not gpus:
            problem = "no machine that the cluster has or can start has a GPU" if address else "this machine has no GPU"
            raise OrchError(f"{problem}: use --device cpu, or a cluster with GPUs")
        most = max(max((node.get("GPU", 0.0) for node in nodes), default=0.0), limits.largest("GPU"))
        if most < gpus_per_trial:
            raise OrchError(
                f"no machine has {gpus_per_trial:g} GPUs for a trial: use --gpus-per-trial {most:g} or less"
            )
    if not cpus:
        raise OrchError("no machine of the cluster has a CPU for trials, and it starts none: raise its max_workers")
    return Machines(cpus, gpus, len(nodes), address, gpus_per_trial, device)


def _live_nodes() -> list[dict[str, Any]]:
    nodes: Any = ray.nodes  # Ray gives it no types
    return [node for node in nodes() if node["Alive"]]


def examine_worker(
    store: str,
    machines: Machines,
    seconds: float,
    names: Sequence[str] | None = None,
    codes: tuple[UserCode, ...] = (),
) -> Iterator[Any]:
    """Run the checks of `orch doctor` on one worker, and yield each finding as it is made.

    The models `names`, by default the built-in ones, are checked; `codes` define those that are not built in.
    """
    sent = [code.to_dict() for code in codes]

    def examine() -> Iterator[Any]:
        import torch

        from orch.running import doctor
        from orch.usercode import UserCode, make_catalogue

        torch.set_num_threads(1)
        catalogue = make_catalogue(tuple(map(UserCode.from_dict, sent)))
        chosen = sorted(catalogue.models) if names is None else names
        yield from doctor.examine(store, machines.device, seconds, chosen, catalogue)

    gpus = machines.gpus_per_trial if machines.device == "cuda" else 0
    remote = ray.remote(examine).options(num_cpus=1, num_gpus=gpus, num_returns="streaming", max_retries=0)
    for finding in remote.remote():  # type: ignore[attr-defined]
        yield ray.get(finding)
