"""The user's AWS account: its clients, the names and tags of what is made in it, and what was changed."""

import contextlib
import dataclasses
import enum
import importlib.util
import re
from collections.abc import Callable, Iterator
from typing import Any

from orch.cluster.problem import quoted
from orch.core.errors import InvalidSettings, OrchError

TAG = "orch-cluster"
"""The tag that marks everything made by `orch cluster init`; its value is the cluster's name."""
NAME = re.compile(r"[a-z][a-z0-9-]{0,28}[a-z0-9]")
DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError", "403")
INVALID = ("AuthFailure", "ExpiredToken", "InvalidClientTokenId", "RequestExpired", "SignatureDoesNotMatch")
ABSENT = (
    "404",
    "InvalidKeyPair.NotFound",
    "NoSuchBucket",
    "NoSuchEntity",
    "NoSuchPublicAccessBlockConfiguration",
    "NoSuchTagSet",
    "ParameterNotFound",
    "ServerSideEncryptionConfigurationNotFoundError",
)


class Verb(enum.Enum):
    """A kind of change, as the infinitive and in the past tense."""

    MAKE = ("make", "made")
    CHANGE = ("change", "changed")
    REMOVE = ("remove", "removed")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """The names of everything that one cluster has in an account. Roles and buckets are shared by regions, so their
    names contain the region."""

    cluster: str
    region: str
    account_id: str
    partition: str = "aws"

    @property
    def bucket(self) -> str:
        return f"{self.cluster}-{self.account_id}-{self.region}"

    @property
    def group(self) -> str:
        return self.cluster

    @property
    def key_pair(self) -> str:
        return f"{self.cluster}-{self.region}"

    def role(self, kind: str) -> str:
        """Return the name of the role, and of the instance profile, of the head or of the workers."""
        return f"{self.cluster}-{self.region}-{kind}"

    def role_arn(self, kind: str) -> str:
        return f"arn:{self.partition}:iam::{self.account_id}:role/{self.role(kind)}"

    @property
    def tags(self) -> list[dict[str, str]]:
        return [{"Key": TAG, "Value": self.cluster}]

    def made(self, tags: list[dict[str, str]] | None) -> bool:
        """Return whether something with these tags was made for this cluster."""
        return self.tags[0] in ({"Key": tag["Key"], "Value": tag["Value"]} for tag in tags or ())


class Account:
    """An account in one region. Every change goes through `change`, which makes none in a dry run."""

    def __init__(self, cluster: str, region: str | None, say: Callable[[str], None], dry_run: bool = False):
        if not NAME.fullmatch(cluster):
            raise InvalidSettings([f"--name {cluster} cannot be used: take 2 to 30 lower-case letters, digits and -"])
        if importlib.util.find_spec("boto3") is None:
            raise OrchError("AWS is reached through boto3, which is not installed here: pip install 'orch[cluster]'")
        import boto3

        self._clients: dict[str, Any] = {}
        with explained():
            self._session = boto3.session.Session(region_name=region)
            self.region = self._session.region_name or "us-east-1"
            if self.region not in (known := self._session.get_available_regions("ec2")):
                raise InvalidSettings([f"there is no AWS region {self.region}: use one of {', '.join(known)}"])
            caller = self.client("sts").get_caller_identity()
        self.names = Names(
            cluster=cluster,
            region=self.region,
            account_id=caller["Account"],
            partition=caller["Arn"].split(":")[1],
        )
        self.dry_run = dry_run
        self.changes: list[str] = []
        self._say = say

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self._session.client(service, region_name=self.region)
        return self._clients[service]

    def found(self, what: str) -> None:
        """Say that something is as it should be."""
        self._say(f"found {what}")

    def change(self, verb: Verb, what: str, call: Callable[[], Any]) -> Any:
        """Make a change and say so; in a dry run, only say what would be done, and return None."""
        self.changes.append(f"{verb.value[0]} {what}")
        result = None if self.dry_run else call()
        self._say(f"would {verb.value[0]} {what}" if self.dry_run else f"{verb.value[1]} {what}")
        return result

    def kept(self, what: str, why: str) -> None:
        """Say that something was not removed."""
        self._say(f"kept {what}: {why}")

    def check_ours(self, what: str, tags: list[dict[str, str]] | None) -> None:
        """Raise an error if something that exists was not made for this cluster."""
        if not self.names.made(tags):
            raise OrchError(f"the {what} exists, and orch cluster init did not make it: choose another --name")

    def may_remove(self, what: str, tags: list[dict[str, str]] | None) -> bool:
        """Return whether something was made for this cluster, and say that it is kept if it was not."""
        if not self.names.made(tags):
            self.kept(what, "orch cluster init did not make it")
        return self.names.made(tags)


def absent(call: Callable[[], Any]) -> Any:
    """Return what a call returns; None if AWS says that the thing does not exist."""
    from botocore.exceptions import ClientError

    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] in ABSENT:
            return None
        raise


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn errors of AWS into one sentence with a remedy. What was made stays: the same command continues."""
    from botocore import exceptions

    again = "run the same command again, which continues where it stopped"
    try:
        yield
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError, exceptions.CredentialRetrievalError):
        raise OrchError(
            "there are no AWS credentials here: set them with aws configure, or AWS_ACCESS_KEY_ID and"
            " AWS_SECRET_ACCESS_KEY"
        ) from None
    except exceptions.ClientError as error:
        told = error.response.get("Error", {})
        code, message = told.get("Code", ""), quoted(told.get("Message") or error)
        if code in DENIED:
            raise OrchError(
                f"your AWS credentials may not do {error.operation_name} ({message}): have the permission added, and"
                f" {again}"
            ) from None
        if code in INVALID:
            raise OrchError(
                f"AWS does not accept your credentials ({message}): log in again, or correct them"
            ) from None
        raise OrchError(f"AWS refused {error.operation_name} ({message}): fix that, and {again}") from None
    except exceptions.BotoCoreError as error:
        raise OrchError(f"AWS cannot be used ({quoted(error)}): fix that, and {again}") from None
