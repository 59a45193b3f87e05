"""The roles of a cluster's machines: an instance profile for the head and one for the workers."""

import json
from typing import Any

from orch.cluster.amazon.account import Account, Verb, absent
from orch.cluster.amazon.policies import trust_policy

POLICY = "orch"
SPOT_ROLES = "/aws-service-role/spot.amazonaws.com/"
"""The path of the account's role for spot requests. AWS makes that role only for requests from its console."""


def ensure_role(account: Account, kind: str, policy: dict[str, Any]) -> bool:
    """Make the role and the instance profile of the head or of the workers, or complete what is there of them.

    Return whether the profile is new.
    """
    iam, name, names = account.client("iam"), account.names.role(kind), account.names
    title = f"role {name}"
    role = absent(lambda: iam.get_role(RoleName=name))
    if role is None:
        trust = json.dumps(trust_policy())
        account.change(
            Verb.MAKE,
            title,
            lambda: iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust, Tags=names.tags),
        )
    else:
        account.check_ours(title, role["Role"].get("Tags"))
        account.found(title)
    held = absent(lambda: iam.get_role_policy(RoleName=name, PolicyName=POLICY))
    if held is None or held["PolicyDocument"] != policy:
        verb = Verb.MAKE if held is None else Verb.CHANGE
        document = json.dumps(policy)
        account.change(
            verb,
            f"the policy of {title}",
            lambda: iam.put_role_policy(RoleName=name, PolicyName=POLICY, PolicyDocument=document),
        )
    profile = absent(lambda: iam.get_instance_profile(InstanceProfileName=name))
    if profile is None:
        account.change(
            Verb.MAKE,
            f"instance profile {name}",
            lambda: iam.create_instance_profile(InstanceProfileName=name, Tags=names.tags),
        )
    else:
        account.check_ours(f"instance profile {name}", profile["InstanceProfile"].get("Tags"))
    if profile is None or not profile["InstanceProfile"]["Roles"]:
        account.change(
            Verb.CHANGE,
            f"instance profile {name}: has its role",
            lambda: iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name),
        )
        return True
    account.found(f"instance profile {name}")
    return False


def ensure_spot_role(account: Account) -> None:
    """Make the account's role for spot requests if nobody has used spot machines yet."""
    iam = account.client("iam")
    if not iam.list_roles(PathPrefix=SPOT_ROLES)["Roles"]:
        account.change(
            Verb.MAKE,
            "the service role for spot requests, which the whole account shares",
            lambda: iam.create_service_linked_role(AWSServiceName="spot.amazonaws.com"),
        )


def remove_role(account: Account, kind: str) -> None:
    """Remove the instance profile and the role if they were made for this cluster."""
    iam, name = account.client("iam"), account.names.role(kind)
    profile = absent(lambda: iam.get_instance_profile(InstanceProfileName=name))
    if profile is not None and account.may_remove(f"instance profile {name}", profile["InstanceProfile"].get("Tags")):

        def remove_profile() -> None:
            for role in profile["InstanceProfile"]["Roles"]:
                iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role["RoleName"])
            iam.delete_instance_profile(InstanceProfileName=name)

        account.change(Verb.REMOVE, f"instance profile {name}", remove_profile)
    role = absent(lambda: iam.get_role(RoleName=name))
    if role is not None and account.may_remove(f"role {name}", role["Role"].get("Tags")):

        def remove() -> None:
            absent(lambda: iam.delete_role_policy(RoleName=name, PolicyName=POLICY))
            iam.delete_role(RoleName=name)

        account.change(Verb.REMOVE, f"role {name}", remove)
