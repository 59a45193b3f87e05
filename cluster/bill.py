"""Estimates of how long a plan keeps a cluster busy and what that costs, without using the network."""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from orch.cluster.launcher import Launcher
from orch.cluster.prices import DATED, INSTANCES, gpus_per_worker, hourly_cost
from orch.core.records import RatesRecord
from orch.planning.plan import Plan, wall_seconds

if TYPE_CHECKING:
    from orch.store import Store

CPU = "cpu"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Bill:
    """Hours and dollars for `num_workers` workers. Dollars are None where a price is unknown."""

    num_workers: int
    hours: float
    low: float | None
    high: float | None


def device_of(launcher: Launcher, store: "Store") -> str | None:
    """Name the device that trials would train on, as the store calls it if trials were measured on it.

    Return None if the file does not say."""
    worker = launcher.preferred_worker
    if worker is None:
        return None
    instance = INSTANCES.get(worker.instance_type or "")
    if not gpus_per_worker(launcher):
        return CPU if instance is not None or worker.num_cpus else None
    if instance is None:
        return "gpu"
    return next((name for name in _measured(store) if _same_gpu(instance.gpu, name)), instance.gpu)


def _measured(store: "Store") -> Iterable[str]:
    if not store.exists():
        return []
    names = {values["device"] for values in store.list_json("rates", RatesRecord).values()}
    return sorted(names | {name for name in store.read("trials", ["device"])["device"].unique().to_pylist() if name})


def _same_gpu(gpu: str, name: str) -> bool:
    """Return whether a device's own name matches a GPU of the price list.

    >>> _same_gpu("A100 40 GB", "NVIDIA A100-SXM4-40GB"), _same_gpu("A100 80 GB", "NVIDIA A100-SXM4-40GB")
    (True, False)
    >>> _same_gpu("A10G 24 GB", "NVIDIA A10G"), _same_gpu("L4 24 GB", "NVIDIA L40S")
    (True, False)
    """
    kind, _, memory = gpu.partition(" ")
    words = re.split(r"[^\w]+", name)
    sizes = [word for word in words if re.fullmatch(r"\d+GB", word)]
    return kind in words and sizes in ([], [memory.replace(" ", "")])


def devices_per_worker(launcher: Launcher) -> int:
    """Count the trials that one worker machine trains at a time."""
    gpus, worker = gpus_per_worker(launcher), launcher.preferred_worker
    if gpus or worker is None:
        return gpus
    instance = INSTANCES.get(worker.instance_type or "")
    return worker.num_cpus or (instance.num_cpus if instance else 0)


def make_bills(plan: Plan, launcher: Launcher) -> list[Bill]:
    """Estimate the bill for one worker and for as many as the file allows.

    The list is empty if the file does not describe the workers or nothing is left to do. Trials that wait for the
    results of others are included. However many workers there are, the longest trial takes its time.
    """
    devices = devices_per_worker(launcher)
    if not devices or not any(each.seconds for each in plan.trials):
        return []
    bills = []
    for num_workers in sorted({1, max(1, launcher.max_workers or 1)}):
        hours = wall_seconds(plan.trials, num_workers * devices) / 3600
        cost = hourly_cost(launcher, num_workers)
        low, high = (None, None) if cost is None else (cost.low * hours, cost.high * hours)
        bills.append(Bill(num_workers=num_workers, hours=hours, low=low, high=high))
    return bills


def assumptions(plan: Plan, bills: Sequence[Bill]) -> str:
    """State the assumptions behind the bills in one line."""
    one = "core" if plan.device == CPU else "GPU"
    in_packs = any(planned.pack > 1 for planned in plan.trials)
    parts = [f"one {'pack' if in_packs else 'trial'} after another on each {one}, all workers up from first to last"]
    if plan.num_waiting:
        parts.append("trials that wait included")
    if any(bill.low is not None for bill in bills):
        parts.append(f"spot to on-demand prices of {DATED}, with the head, without disks and traffic")
    return "; ".join(parts)
