"""The account's quotas of virtual CPUs, which are 0 for machines with GPUs until AWS raises them."""

import re
from typing import Any

from orch.cluster.amazon.account import Account


def shortage(account: Account, instance_type: str, num_cpus: int, spot: bool) -> str | None:
    """Say that the quota does not allow one machine of this type; None if it does, or is not known."""
    family = re.match(r"[a-z]+\d", instance_type)
    if family is None:
        return None
    generation = family[0].upper()
    for quota in _quotas(account):
        name = str(quota["QuotaName"])
        is_meant = name.endswith("Spot Instance Requests") if spot else name.startswith("Running On-Demand")
        if is_meant and {generation, generation[:-1]} & set(re.split(r"[ ,]+", name)) and quota["Value"] < num_cpus:
            return (
                f"your quota {name!r} in {account.region} is {quota['Value']:.0f} CPUs, and one {instance_type} has"
                f" {num_cpus}: ask AWS for more ({quota['QuotaCode']} of Service Quotas)"
            )
    return None


def _quotas(account: Account) -> list[dict[str, Any]]:
    """Return the quotas of EC2; none where the user may not see them."""
    from botocore.exceptions import BotoCoreError, ClientError

    pages = account.client("service-quotas").get_paginator("list_service_quotas")
    try:
        return [quota for page in pages.paginate(ServiceCode="ec2") for quota in page["Quotas"]]
    except (BotoCoreError, ClientError):
        return []
