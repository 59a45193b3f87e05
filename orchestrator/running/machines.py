"""What there is to run on: reaching a Ray cluster, or starting one here, and what its machines have."""

import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ray

from orch.core.errors import OrchError
from orch.running.autoscaling import BOOTSTRAP, Growth

JOIN_SECONDS = 60.0


@dataclass(frozen=True)
class Machines:
    """What there is to run on, or can be: a cluster that grows counts as grown."""

    cpus: int
    gpus: int
    nodes: int
    """Now."""
    address: str | None
    """The cluster's address; nothing for a Ray of our own on this machine."""

    gpus_per_trial: float = 1.0
    device: str = "cpu"

    @property
    def slots(self) -> int:
        """How many trials run at once."""
        return max(1, min(self.cpus, int(self.gpus / self.gpus_per_trial)) if self.device == "cuda" else self.cpus)

    @property
    def description(self) -> str:
        parts = [f"{self.cpus} CPU core{'s' * (self.cpus != 1)}"]
        if self.gpus:
            parts.append(f"{self.gpus} GPU{'s' * (self.gpus != 1)}")
        if not self.address:
            return f"this machine only ({', '.join(parts)})"
        nodes = f"{self.nodes} node{'s' * (self.nodes != 1)} now"
        return f"the Ray cluster at {self.address} ({nodes}, in all up to {', '.join(parts)})"


def connect(num_cpus: int | None = None, gpus_per_trial: float = 1.0, device: str = "auto") -> Machines:
    """Join the cluster that RAY_ADDRESS names or of which this machine is the head, or start a Ray of our own here.

    `device` is what trials train on: by default GPUs where there are any.
    """
    # One thread per CPU given to a trial, for every library that would otherwise take all cores.
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    growth = Growth.of_this_head()
    address = os.environ.get("RAY_ADDRESS") or ("auto" if growth else None)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address:
        try:
            ray.init(address=address, **quiet)
        except ConnectionError as error:
            if "RAY_ADDRESS" not in os.environ:
                raise OrchError(
                    f"this machine was the head of a cluster that is down: ray up starts it again; to run on this"
                    f" machine alone, remove {BOOTSTRAP}"
                ) from None
            raise OrchError(
                f"no Ray cluster answers at RAY_ADDRESS={address} ({error}): start it, or unset it"
            ) from None
        address = ray.get_runtime_context().gcs_address
        _wait_for_own_machines(growth)
    else:
        ray.init(address="local", num_cpus=num_cpus, include_dashboard=False, **quiet)
    try:
        return _machines(address, growth or Growth(), gpus_per_trial, device)
    except OrchError:
        ray.shutdown()
        raise


def _wait_for_own_machines(growth: Growth | None) -> None:
    """They join one by one for some seconds after `ray up` has returned; what they have decides what trials run on."""
    until = time.monotonic() + JOIN_SECONDS
    while growth and time.monotonic() < until:
        if sum(node["Alive"] for node in ray.nodes()) > growth.own:  # they, and the head
            break
        time.sleep(0.5)


def _machines(address: str | None, growth: Growth, gpus_per_trial: float, device: str) -> Machines:
    found = ray.cluster_resources()
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    cpus, gpus = (max(int(found.get(kind, 0)), growth.total(kind)) for kind in ("CPU", "GPU"))
    if device == "auto":
        device = "cuda" if gpus else "cpu"
    if device == "cuda":
        if not gpus:
            where = "no machine of the cluster, and no kind it could start," if address else "this machine"
            has = "has a GPU" if address else "has no GPU"
            raise OrchError(f"{where} {has}: use --device cpu, or a cluster with GPUs")
        most = max(max((node.get("GPU", 0.0) for node in nodes), default=0.0), growth.most("GPU"))
        if most < gpus_per_trial:
            raise OrchError(
                f"no machine has {gpus_per_trial:g} GPUs for a trial: use --gpus-per-trial {most:g} or less"
            )
    if not cpus:
        raise OrchError("no machine of the cluster has a CPU for trials, and it starts none: raise its max_workers")
    return Machines(cpus, gpus, len(nodes), address, gpus_per_trial, device)


def disconnect() -> None:
    ray.shutdown()


def examine_worker(store: str, machines: Machines, seconds: float) -> Iterator[Any]:
    """What `orch doctor` finds on one worker, each finding as it is made."""

    def examine() -> Iterator[Any]:
        import torch

        from orch.running import doctor

        torch.set_num_threads(1)
        yield from doctor.examine(store, machines.device, seconds)

    gpus = machines.gpus_per_trial if machines.device == "cuda" else 0
    remote = ray.remote(examine).options(num_cpus=1, num_gpus=gpus, num_returns="streaming", max_retries=0)
    for finding in remote.remote():  # type: ignore[attr-defined]
        yield ray.get(finding)
