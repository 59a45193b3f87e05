"""The bucket of a cluster's store: private, encrypted, without versions."""

import re

from orch.cluster.amazon.account import Account, Verb, absent
from orch.core.errors import InvalidSettings, OrchError

NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
PRIVATE = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": True,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": True,
}
ENCRYPTED = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}


def ensure_bucket(account: Account, given: str | None) -> str:
    """Make the bucket, or find it. A bucket of the user's own, given by its name, is used as it is."""
    if given and not NAME.fullmatch(given):
        raise InvalidSettings(
            [f"--bucket {given} is no name of a bucket: use 3 to 63 lower-case letters, digits, . and -, without s3://"]
        )
    s3, bucket = account.client("s3"), given or account.names.bucket
    place = f"bucket s3://{bucket}"
    exists = _exists(account, bucket)
    if not exists:
        where = {} if account.region == "us-east-1" else {"LocationConstraint": account.region}
        settings = {"CreateBucketConfiguration": where} if where else {}
        account.change(Verb.MAKE, place, lambda: s3.create_bucket(Bucket=bucket, **settings))
    is_there = exists or not account.dry_run
    tags = _tags(account, bucket) if is_there else []
    if given and exists and not account.names.made(tags):
        account.found(f"{place}, your own: it is left as it is")
        return bucket
    num_changes = len(account.changes)
    if not account.names.made(tags):
        tagging = {"TagSet": [*tags, *account.names.tags]}
        account.change(Verb.CHANGE, f"{place}: tagged", lambda: s3.put_bucket_tagging(Bucket=bucket, Tagging=tagging))
    found = absent(lambda: s3.get_public_access_block(Bucket=bucket)) if is_there else None
    if found is None or found["PublicAccessBlockConfiguration"] != PRIVATE:
        block = {"PublicAccessBlockConfiguration": PRIVATE}
        account.change(
            Verb.CHANGE, f"{place}: closed to the public", lambda: s3.put_public_access_block(Bucket=bucket, **block)
        )
    if not is_there or absent(lambda: s3.get_bucket_encryption(Bucket=bucket)) is None:
        encryption = {"ServerSideEncryptionConfiguration": ENCRYPTED}
        account.change(
            Verb.CHANGE, f"{place}: encrypted", lambda: s3.put_bucket_encryption(Bucket=bucket, **encryption)
        )
    if exists and s3.get_bucket_versioning(Bucket=bucket).get("Status") == "Enabled":
        suspended = {"VersioningConfiguration": {"Status": "Suspended"}}
        account.change(
            Verb.CHANGE, f"{place}: without versions", lambda: s3.put_bucket_versioning(Bucket=bucket, **suspended)
        )
    if len(account.changes) == num_changes and exists:
        account.found(place)
    return bucket


def remove_bucket(account: Account, bucket: str, results: bool) -> None:
    """Remove the bucket if it was made for this cluster. One with results stays, unless `results` go too."""
    s3, place = account.client("s3"), f"bucket s3://{bucket}"
    if not _exists(account, bucket):
        return
    if not account.may_remove(place, _tags(account, bucket)):
        return
    versions = s3.get_paginator("list_object_versions")
    if not results and any(_objects(page) for page in versions.paginate(Bucket=bucket, MaxKeys=1)):
        account.kept(place, "it has results; --results removes it with them")
        return

    def empty_and_remove() -> None:
        for page in versions.paginate(Bucket=bucket):
            if found := _objects(page):
                s3.delete_objects(Bucket=bucket, Delete={"Objects": found, "Quiet": True})
        s3.delete_bucket(Bucket=bucket)

    account.change(Verb.REMOVE, f"{place}{' with all results' if results else ''}", empty_and_remove)


def _objects(page: dict[str, list[dict[str, str]]]) -> list[dict[str, str]]:
    found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
    return [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in found]


def _exists(account: Account, bucket: str) -> bool:
    from botocore.exceptions import ClientError

    owner = account.names.account_id
    try:
        found = absent(lambda: account.client("s3").head_bucket(Bucket=bucket, ExpectedBucketOwner=owner))
    except ClientError as error:
        if error.response["Error"]["Code"] in ("403", "AccessDenied"):
            raise OrchError(
                f"the bucket {bucket} belongs to another account, or you may not read it: name another with --bucket"
            ) from None
        raise
    return found is not None


def _tags(account: Account, bucket: str) -> list[dict[str, str]]:
    found = absent(lambda: account.client("s3").get_bucket_tagging(Bucket=bucket))
    return found["TagSet"] if found else []
