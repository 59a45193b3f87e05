"""Policies of the roles of the head and of the workers: what machines of a cluster may do in the account."""

from collections.abc import Sequence
from typing import Any

from orch.cluster.amazon.account import Names

RAY_TAG = "ray-cluster-name"
"""The tag that Ray gives to every machine when it starts it."""
VERSION = "2012-10-17"


def trust_policy() -> dict[str, Any]:
    """Return the policy that lets EC2 machines take a role."""
    statement = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    return {"Version": VERSION, "Statement": [statement]}


def worker_policy(names: Names, bucket: str) -> dict[str, Any]:
    """Return what a worker may do: read and write the store's bucket."""
    return {"Version": VERSION, "Statement": _use_bucket(names, bucket)}


def head_policy(names: Names, bucket: str, group_id: str, subnet_ids: Sequence[str]) -> dict[str, Any]:
    """Return what the head may do: start and end machines of its own cluster, and read and write the bucket.

    Machines carry the cluster's tag from the start. They are started in the cluster's security group and subnets only,
    with no role but the workers'.
    """
    tagged = {"StringEquals": {f"aws:ResourceTag/{RAY_TAG}": names.cluster}}
    starting = {f"aws:RequestTag/{RAY_TAG}": names.cluster}
    statements = [
        _allow("StartTaggedMachines", ["ec2:RunInstances"], [_ec2(names, "instance/*")], {"StringEquals": starting}),
        _allow(
            "StartThemWith",
            ["ec2:RunInstances"],
            [
                f"arn:{names.partition}:ec2:{names.region}::image/*",
                _ec2(names, f"key-pair/{names.key_pair}"),
                _ec2(names, "network-interface/*"),
                _ec2(names, f"security-group/{group_id}"),
                _ec2(names, "spot-instances-request/*"),
                *(_ec2(names, f"subnet/{subnet_id}") for subnet_id in subnet_ids),
                _ec2(names, "volume/*"),
            ],
        ),
        _allow(
            "TagThemAtTheStart",
            ["ec2:CreateTags"],
            [_ec2(names, "instance/*")],
            {"StringEquals": {"ec2:CreateAction": "RunInstances"} | starting},
        ),
        _allow("TagAndEndThem", ["ec2:CreateTags", "ec2:TerminateInstances"], [_ec2(names, "instance/*")], tagged),
        # Describing knows no resources.
        _allow("SeeMachines", ["ec2:DescribeInstances"], ["*"]),
        _allow(
            "GiveThemTheWorkersRole",
            ["iam:PassRole"],
            [names.role_arn("worker")],
            {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
        ),
    ]
    return {"Version": VERSION, "Statement": [*statements, *_use_bucket(names, bucket)]}


def _use_bucket(names: Names, bucket: str) -> list[dict[str, Any]]:
    place = f"arn:{names.partition}:s3:::{bucket}"
    objects = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
    return [
        _allow("ListTheBucket", ["s3:ListBucket", "s3:GetBucketLocation"], [place]),
        _allow("UseItsObjects", objects, [f"{place}/*"]),
    ]


def _ec2(names: Names, resource: str) -> str:
    return f"arn:{names.partition}:ec2:{names.region}:{names.account_id}:{resource}"


def _allow(
    title: str, actions: Sequence[str], resources: Sequence[str], condition: dict[str, Any] | None = None
) -> dict[str, Any]:
    statement = {"Sid": title, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
    return statement | ({"Condition": condition} if condition else {})
