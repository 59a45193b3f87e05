"""How far a cluster that `ray up` started can grow, read from the launcher file on its head."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BOOTSTRAP = "~/ray_bootstrap_config.yaml"
"""Where `ray up` leaves the launcher file on the head, completed with the resources of each kind of machine."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The kinds of worker machines: the resources of each, and the largest number of machines."""

    kinds: tuple[tuple[Mapping[str, float], int], ...] = ()
    limit: int = 0
    """The largest number of machines of all kinds together."""
    own: int = 0
    """The number of the user's own machines, which belong to the cluster from the start."""

    @classmethod
    def of_this_head(cls, path: str = BOOTSTRAP) -> "Growth | None":
        """Read the launcher file of this machine; None if it is not the head of such a cluster."""
        import yaml

        try:
            config: dict[str, Any] = yaml.safe_load(Path(path).expanduser().read_text())
        except (OSError, yaml.YAMLError):
            return None
        if not isinstance(config, dict):
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
        """Return the amount of a resource in the cluster at its largest, with the machines that have most of it."""
        left, total = self.limit, 0.0
        for resources, count in sorted(self.kinds, key=lambda kind: -kind[0].get(resource, 0)):
            total += min(left, count) * resources.get(resource, 0)
            left -= min(left, count)
        return int(total)

    def most(self, resource: str) -> float:
        """Return the largest amount of a resource on one machine."""
        return max((resources.get(resource, 0) for resources, count in self.kinds if count), default=0.0)
