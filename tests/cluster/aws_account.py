"""The stand-in for an account of AWS, and `orch cluster init aws` as its user would type it."""

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from click.testing import CliRunner, Result

from orch.cli import main

ACCOUNT = "123456789012"
REGION = "us-east-1"
BUCKET = f"orch-{ACCOUNT}-{REGION}"


@functools.cache
def images() -> list[str]:
    """The ids of images that the stand-in knows. Listing them takes it seconds."""
    return [each["ImageId"] for each in client("ec2").describe_images(Owners=["amazon"])["Images"]]


SESSION = boto3.session.Session


@functools.cache
def session(region: str | None, key: str | None) -> Any:
    """A session for each region and user: a new one reads megabytes of descriptions of AWS."""
    return SESSION(region_name=region)


@functools.cache
def client(service: str) -> Any:
    return session(REGION, "key").client(service, REGION)


def orch(*words: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(main, ["cluster", *words], input=answer)


def init(file: Path, *words: str) -> Result:
    """Run the command with the options that have no default here: neither image nor address can be looked up."""
    given = () if "--ssh-from" in words else ("--ssh-from", "203.0.113.7")
    return orch("init", "aws", "--output", str(file), "--image", images()[0], *given, *words)


def done(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


@contextlib.contextmanager
def denied(monkeypatch: pytest.MonkeyPatch, operation: str) -> Iterator[None]:
    """Let AWS refuse an operation, as it does to a user without that permission."""
    call = BaseClient._make_api_call

    def deny(self: Any, name: str, arguments: Any) -> Any:
        if name == operation:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not authorized"}}, name)
        return call(self, name, arguments)

    with monkeypatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", deny)
        yield


def policy(kind: str) -> dict[str, Any]:
    name = f"orch-{REGION}-{kind}"
    return client("iam").get_role_policy(RoleName=name, PolicyName="orch")["PolicyDocument"]


def everything() -> dict[str, list[str]]:
    """The names of all that the account has and that the command may make."""
    return {
        "buckets": sorted(each["Name"] for each in client("s3").list_buckets()["Buckets"]),
        "groups": sorted(each["GroupName"] for each in client("ec2").describe_security_groups()["SecurityGroups"]),
        "keys": [each["KeyName"] for each in client("ec2").describe_key_pairs()["KeyPairs"]],
        "profiles": [
            each["InstanceProfileName"] for each in client("iam").list_instance_profiles()["InstanceProfiles"]
        ],
        "roles": sorted(
            each["RoleName"] for each in client("iam").list_roles()["Roles"] if "service-role" not in each["Path"]
        ),
    }
