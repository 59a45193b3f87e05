"""The limits of a cluster that `ray up` started, read from the launcher file on its head."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orch.core.launcher_shape import LauncherShape
from orch.core.reading import LAUNCHER_BYTES, parse_yaml, read_text
from orch.core.shape import checked

BOOTSTRAP = "~/ray_bootstrap_config.yaml"
"""The copy of the launcher file that `ray up` leaves on the head, with the resources of each type of machine."""


@dataclass(frozen=True, slots=True)
class ClusterLimits:
    """The largest size that a cluster can have: for each type of worker machine its resources and largest number."""

    machine_types: tuple[tuple[Mapping[str, float], int], ...] = ()
    max_machines: int = 0
    """The largest number of worker machines of all types together."""
    num_own: int = 0
    """The number of machines that are not rented; they belong to the cluster from the start."""

    @classmethod
    def of_this_head(cls, path: str = BOOTSTRAP) -> "ClusterLimits | None":
        """Read the launcher file of this machine; None if it is not the head of such a cluster."""
        try:
            text = read_text(Path(path).expanduser(), LAUNCHER_BYTES)
            config = checked(parse_yaml(text), LauncherShape)
        except (OSError, ValueError):
            return None
        limit = int(config.get("max_workers") or 0)
        head = config.get("head_node_type")
        kinds = [
            (kind.get("resources") or {}, min(limit, int(kind.get("max_workers", limit) or 0)))
            for name, kind in (config.get("available_node_types") or {}).items()
            if name != head
        ]
        return cls(tuple(kinds), limit, len((config.get("provider") or {}).get("worker_ips") or ()))

    def total(self, resource: str) -> int:
        """Return the largest amount of a resource that the cluster can have."""
        left, total = self.max_machines, 0.0
        for resources, count in sorted(self.machine_types, key=lambda kind: -kind[0].get(resource, 0)):
            total += min(left, count) * resources.get(resource, 0)
            left -= min(left, count)
        return int(total)

    def largest(self, resource: str) -> float:
        """Return the largest amount of a resource on one machine."""
        return max((resources.get(resource, 0) for resources, count in self.machine_types if count), default=0.0)
