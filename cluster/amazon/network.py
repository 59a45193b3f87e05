"""The network of a cluster: subnets of the default network, and a security group that lets in ssh from one address."""

import functools
import ipaddress
import urllib.request
from collections.abc import Sequence
from typing import Any

from orch.cluster.amazon.account import Account, Verb
from orch.core.errors import InvalidSettings, OrchError

ADDRESS_SERVICE = "https://checkip.amazonaws.com"
ADDRESS_SECONDS = 5.0
SSH = 22


def address_range(given: str | None) -> str:
    """Return the addresses that ssh is let in from, as a CIDR block: those given, or this machine's public address."""
    if given is None:
        try:
            with urllib.request.urlopen(ADDRESS_SERVICE, timeout=ADDRESS_SECONDS) as answer:
                given = answer.read(100).decode().strip()
            ipaddress.ip_address(given)
        except (OSError, ValueError):
            raise OrchError(
                f"your public address was not found ({ADDRESS_SERVICE} does not answer): give it with"
                " --ssh-from ADDRESS"
            ) from None
    try:
        found = ipaddress.ip_network(given, strict=False)
    except ValueError:
        raise InvalidSettings(
            [f"--ssh-from {given} is no address: use one like 203.0.113.7 or 203.0.113.0/24"]
        ) from None
    if not found.prefixlen:
        raise InvalidSettings([f"--ssh-from {given} opens ssh to everybody: name the addresses that you use"])
    return str(found)


def find_subnets(account: Account, instance_types: Sequence[str]) -> list[str]:
    """Return the public subnets of the default network in the zones that offer all of these instance types."""
    ec2 = account.client("ec2")
    pages = ec2.get_paginator("describe_subnets").paginate(
        Filters=[{"Name": "default-for-az", "Values": ["true"]}, {"Name": "state", "Values": ["available"]}]
    )
    subnets = [each for page in pages for each in page["Subnets"] if each["MapPublicIpOnLaunch"]]
    if not subnets:
        raise OrchError(
            f"{account.region} has no default network: make one with aws ec2 create-default-vpc --region"
            f" {account.region}, or choose another --region"
        )
    zones = [_zones(ec2, each) for each in instance_types]
    for name, found in zip(instance_types, zones, strict=True):
        if not found:
            raise InvalidSettings([f"{account.region} offers no {name}: choose another --region or --instance-type"])
    chosen = [each for each in subnets if all(each["AvailabilityZone"] in found for found in zones)]
    if not chosen:
        raise OrchError(
            f"no zone of {account.region} with a default subnet offers {' and '.join(instance_types)}: choose another"
            " --region or --instance-type"
        )
    return [each["SubnetId"] for each in sorted(chosen, key=lambda each: str(each["AvailabilityZone"]))]


def _zones(ec2: Any, instance_type: str) -> set[str]:
    pages = ec2.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": [instance_type]}]
    )
    return {each["Location"] for page in pages for each in page["InstanceTypeOfferings"]}


def ensure_group(account: Account, subnet_id: str, ssh_from: str) -> str:
    """Make the security group, or find it, and let in ssh from these addresses only and everything from itself.

    Return its id; in a dry run that would make it, a text that stands for it.
    """
    ec2, name = account.client("ec2"), account.names.group
    (subnet,) = ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"]
    title, num_changes = f"security group {name}", len(account.changes)
    found = next((group for group in _groups(ec2, name) if group["VpcId"] == subnet["VpcId"]), None)
    if found is None:
        tagged = [{"ResourceType": "security-group", "Tags": account.names.tags}]
        about = {"Description": f"The machines of the Ray cluster {name}", "VpcId": subnet["VpcId"]}
        made = account.change(
            Verb.MAKE,
            title,
            lambda: ec2.create_security_group(GroupName=name, TagSpecifications=tagged, **about),
        )
        found = {"GroupId": made["GroupId"] if made else f"sg-of-{name}", "IpPermissions": []}
    else:
        account.check_ours(title, found.get("Tags"))
    group_id: str = found["GroupId"]
    among = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group_id}]}
    ssh = {"IpProtocol": "tcp", "FromPort": SSH, "ToPort": SSH} | _ranges(ssh_from)
    rules = found["IpPermissions"]
    if not any(group_id in _from_groups(rule) and rule["IpProtocol"] == "-1" for rule in rules):
        what = f"{title}: lets in everything from itself"
        allow_among = {"GroupId": group_id, "IpPermissions": [among]}
        account.change(Verb.CHANGE, what, lambda: ec2.authorize_security_group_ingress(**allow_among))
    if not any(ssh_from in _addresses(rule) and _ports(rule) == (SSH, SSH) for rule in rules):
        what = f"{title}: lets in ssh from {ssh_from}"
        allow_ssh = {"GroupId": group_id, "IpPermissions": [ssh]}
        account.change(Verb.CHANGE, what, lambda: ec2.authorize_security_group_ingress(**allow_ssh))
    for address in sorted({each for rule in rules for each in _addresses(rule)} - {ssh_from}):
        old = [dict(rule, UserIdGroupPairs=[]) | _ranges(address) for rule in rules if address in _addresses(rule)]
        _close(account, group_id, f"{title}: no longer lets in {address}", old)
    if len(account.changes) == num_changes:
        account.found(title)
    return group_id


def _close(account: Account, group_id: str, what: str, rules: list[dict[str, Any]]) -> None:
    known = ("IpProtocol", "FromPort", "ToPort", "IpRanges", "Ipv6Ranges")
    closed = [{key: value for key, value in rule.items() if key in known and value != []} for rule in rules]
    ec2 = account.client("ec2")
    account.change(Verb.CHANGE, what, lambda: ec2.revoke_security_group_ingress(GroupId=group_id, IpPermissions=closed))


def remove_group(account: Account) -> None:
    """Remove the security group if it was made for this cluster."""
    ec2, name = account.client("ec2"), account.names.group
    for group in _groups(ec2, name):
        if account.may_remove(f"security group {name}", group.get("Tags")):
            remove = functools.partial(ec2.delete_security_group, GroupId=group["GroupId"])
            account.change(Verb.REMOVE, f"security group {name}", remove)


def _groups(ec2: Any, name: str) -> list[dict[str, Any]]:
    """Return the security groups of a name: each network may have one."""
    found: list[dict[str, Any]] = ec2.describe_security_groups(Filters=[{"Name": "group-name", "Values": [name]}])[
        "SecurityGroups"
    ]
    return found


def _ranges(address: str) -> dict[str, Any]:
    if ":" in address:
        return {"Ipv6Ranges": [{"CidrIpv6": address}], "IpRanges": []}
    return {"IpRanges": [{"CidrIp": address}], "Ipv6Ranges": []}


def _ports(rule: dict[str, Any]) -> tuple[int | None, int | None]:
    return rule.get("FromPort"), rule.get("ToPort")


def _addresses(rule: dict[str, Any]) -> list[str]:
    found = [each["CidrIp"] for each in rule.get("IpRanges", ())]
    return found + [each["CidrIpv6"] for each in rule.get("Ipv6Ranges", ())]


def _from_groups(rule: dict[str, Any]) -> list[str]:
    return [each["GroupId"] for each in rule.get("UserIdGroupPairs", ())]
