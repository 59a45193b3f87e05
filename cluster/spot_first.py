"""A scorer for Ray's autoscaler that prefers spot machines while they are available, else on-demand ones.

The head starts with RAY_AUTOSCALER_UTILIZATION_SCORER=orch.cluster.spot_first.score, which Ray's older autoscaler
uses. The newer one ranks node types by priority, but in Ray 2.60 it keeps asking EC2 for a type that EC2 refuses.
"""

from typing import Any


def score(
    node_resources: dict[str, Any], resources: list[dict[str, Any]], node_type: str, *, node_availability_summary: Any
) -> tuple[Any, ...] | None:
    """Score starting a machine of this type for these demands; None if no demand fits it.

    A type that the cloud refused comes last until Ray forgets the refusal after half an hour. Among equals spot wins.
    """
    from ray.autoscaler._private.resource_demand_scheduler import _default_utilization_scorer

    fit = _default_utilization_scorer(
        node_resources, resources, node_type, node_availability_summary=node_availability_summary
    )
    if fit is None:
        return None
    known = node_availability_summary.node_availabilities.get(node_type)
    return (known is None or known.is_available, *fit, "spot" in node_type)
