"""Hourly prices of machines in US dollars, with their numbers of GPUs and CPUs.

On-demand: AWS's price list for Linux in us-east-1 as of 24 September 2026, taken from public copies of it. Spot moves
with the market and the zone: these are averages of the region on 17 September 2026 from a public mirror of the price
list, where it had one, and no more than an order of magnitude. Disks, traffic and taxes are not included.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType

from orch.cluster.launcher import Launcher, NodeType

DATED = "September 2026, us-east-1"


@dataclasses.dataclass(frozen=True, slots=True)
class Instance:
    """An instance type. A price is None where none is recorded: no spot price, and no price on Google Cloud."""

    num_gpus: int
    gpu: str
    num_cpus: int
    on_demand: float | None
    spot: float | None = None


INSTANCES: Mapping[str, Instance] = MappingProxyType(
    {
        "p4d.24xlarge": Instance(8, "A100 40 GB", 96, 21.957642, 16.298),
        "p4de.24xlarge": Instance(8, "A100 80 GB", 96, 27.44705),
        "p5.48xlarge": Instance(8, "H100 80 GB", 192, 55.04, 20.788),
        "p5en.48xlarge": Instance(8, "H200 141 GB", 192, 63.296),
        "g5.xlarge": Instance(1, "A10G 24 GB", 4, 1.006, 0.636),
        "g5.12xlarge": Instance(4, "A10G 24 GB", 48, 5.672),
        "g5.48xlarge": Instance(8, "A10G 24 GB", 192, 16.288),
        "g6.xlarge": Instance(1, "L4 24 GB", 4, 0.8048),
        "g6.48xlarge": Instance(8, "L4 24 GB", 192, 13.3504),
        "g6e.xlarge": Instance(1, "L40S 48 GB", 4, 1.861),
        "g6e.48xlarge": Instance(8, "L40S 48 GB", 192, 30.13118),
        "m7i.xlarge": Instance(0, "", 4, 0.2016),
        "m7i.2xlarge": Instance(0, "", 8, 0.4032),
        "m7i.4xlarge": Instance(0, "", 16, 0.8064),
        "m7i.8xlarge": Instance(0, "", 32, 1.6128),
        "a2-highgpu-1g": Instance(1, "A100 40 GB", 12, None),
        "a2-highgpu-2g": Instance(2, "A100 40 GB", 24, None),
        "a2-highgpu-4g": Instance(4, "A100 40 GB", 48, None),
        "a2-highgpu-8g": Instance(8, "A100 40 GB", 96, None),
        "a2-megagpu-16g": Instance(16, "A100 40 GB", 96, None),
        "a2-ultragpu-8g": Instance(8, "A100 80 GB", 96, None),
        "n2-standard-8": Instance(0, "", 8, None),
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class HourlyCost:
    """Dollars per hour if every worker is of the file's cheapest node type, and of its most expensive one."""

    low: float
    high: float


def dollars(amount: float) -> str:
    """Format an amount, with cents unless it is large.

    >>> dollars(1.675), dollars(2345.6)
    ('$1.68', '$2,346')
    """
    return f"${amount:,.0f}" if amount >= 100 else f"${amount:.2f}"


def num_gpus(node: NodeType) -> int:
    """Count the GPUs of one machine: as declared in the file, else as its instance type has."""
    if node.num_gpus is not None:
        return node.num_gpus
    instance = INSTANCES.get(node.instance_type or "")
    return instance.num_gpus if instance else 0


def gpus_per_worker(launcher: Launcher) -> int:
    """Count the GPUs of a worker of the node type that is started first; 0 if the file does not say."""
    return num_gpus(launcher.preferred_worker) if launcher.preferred_worker else 0


def hourly_cost(launcher: Launcher, num_workers: int) -> HourlyCost | None:
    """Return the hourly cost of the head and `num_workers` workers; None if the price of a machine is unknown."""
    prices = node_prices(launcher)
    if prices is None or launcher.head is None:
        return None
    head, workers = prices[launcher.head.name], [prices[node.name] for node in launcher.workers]
    return HourlyCost(head + num_workers * min(workers), head + num_workers * max(workers))


def node_prices(launcher: Launcher) -> dict[str, float] | None:
    """Return the hourly price of each node type by its name; None if one of them is unknown."""
    if launcher.provider != "aws" or launcher.head is None or not launcher.workers:
        return None
    found = {node.name: _price(node) for node in (launcher.head, *launcher.workers)}
    known = {name: price for name, price in found.items() if price is not None}
    return known if len(known) == len(found) else None


def _price(node: NodeType) -> float | None:
    """Return the hourly price. Spot without a recorded price counts as on demand, so that no estimate is too low."""
    instance = INSTANCES.get(node.instance_type or "")
    if instance is None:
        return None
    return instance.spot if node.spot and instance.spot is not None else instance.on_demand
