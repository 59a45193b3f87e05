"""The hourly cost of a running cluster: the sum of the prices of the machines that are alive at the moment."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orch.cluster.launcher import from_config, load_config
from orch.cluster.prices import node_prices
from orch.running.autoscaling import BOOTSTRAP


def make_meter(price: float | None, path: str = BOOTSTRAP) -> Callable[[], float | None] | None:
    """Return a function that returns the dollars per hour of the machines that are alive.

    A given `price` counts for each machine. Otherwise this machine has to be the head of a cluster whose machines have
    list prices; if it is not, return None.
    """
    if price is not None:
        return lambda: price * _num_alive()
    file = Path(path).expanduser()
    launcher = from_config(file, load_config(file)) if file.exists() else None
    prices = node_prices(launcher) if launcher else None
    if prices is None:
        return None
    return lambda: sum(prices[name] * count for name, count in _count_types(prices).items())


def _count_types(prices: Mapping[str, float]) -> Mapping[str, int]:
    """Count the machines of each type: as Ray's autoscaler reports them, those included that are being set up.

    Before its first report, every machine counts as one of the most expensive type.
    """
    counts = _reported()
    if counts is not None:
        return {name: count for name, count in counts.items() if name in prices}
    return {max(prices, key=lambda name: prices[name]): _num_alive()}


def _reported() -> Mapping[str, int] | None:
    from ray._private.ray_constants import DEBUG_AUTOSCALING_STATUS
    from ray.experimental.internal_kv import _internal_kv_get

    text = _internal_kv_get(DEBUG_AUTOSCALING_STATUS.encode())
    report = json.loads(text).get("autoscaler_report") if text else None
    return None if report is None else count_reported(report)


def count_reported(report: Mapping[str, Any]) -> Counter[str]:
    """Count the machines of each type in a report of Ray's autoscaler."""
    counts = Counter({str(name): int(count) for name, count in (report.get("active_nodes") or {}).items()})
    return counts + Counter(str(each[1]) for each in report.get("pending_nodes") or ())


def _num_alive() -> int:
    import ray

    nodes: Any = ray.nodes  # Ray gives it no types
    return sum(bool(node["Alive"]) for node in nodes())
