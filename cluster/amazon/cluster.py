"""Everything that a cluster on AWS needs, made or found by one call and removed by another."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from orch.cluster.amazon.account import Account, Verb, explained
from orch.cluster.amazon.bucket import ensure_bucket, remove_bucket
from orch.cluster.amazon.key_pair import ensure_key_pair, private_key, remove_key_pair
from orch.cluster.amazon.launcher_file import (
    TEMPLATE,
    Contents,
    check_replaceable,
    launcher_text,
    write_launcher,
)
from orch.cluster.amazon.machine_facts import find_image, find_size
from orch.cluster.amazon.network import address_range, ensure_group, find_subnets, remove_group
from orch.cluster.amazon.policies import RAY_TAG, head_policy, worker_policy
from orch.cluster.amazon.quotas import shortage
from orch.cluster.amazon.roles import ensure_role, ensure_spot_role, remove_role
from orch.cluster.amazon.token import TOKEN, ensure_token
from orch.cluster.launcher import Launcher, from_config, load_config, read_launcher
from orch.cluster.placeholders import is_placeholder
from orch.cluster.rules import check_shipping
from orch.core.errors import InvalidSettings, OrchError

SPREAD_SECONDS = 12.0
"""The time that EC2 needs to learn of a new instance profile. Until then it starts no machine with it."""
KINDS = ("head", "worker")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A cluster as the user describes it. What is None is as in its launcher file, or as in the template."""

    name: str
    output: Path
    max_workers: int | None = None
    instance_type: str | None = None
    spot: bool | None = None
    region: str | None = None
    ssh_from: str | None = None
    bucket: str | None = None
    image: str | None = None


def init_cluster(wanted: Wanted, say: Callable[[str], None], dry_run: bool = False) -> list[str]:
    """Make what is missing of a cluster, and write its launcher file. Return the changes, which a dry run does not
    make.

    A second call finds everything and changes nothing; one after a failure goes on where that stopped.
    """
    _check_project()
    account = Account(wanted.name, wanted.region, say, dry_run)
    names = account.names
    check_replaceable(wanted.output, names.cluster, names.region)
    before = read_launcher(wanted.output) if wanted.output.exists() else None
    template = read_launcher(TEMPLATE)
    worker = (before or template).preferred_worker
    assert worker is not None
    assert template.head is not None
    instance_type = wanted.instance_type or str(worker.instance_type)
    spot = worker.spot if wanted.spot is None else wanted.spot
    with explained():
        size = find_size(account, instance_type)
        image = find_image(account, wanted.image, worker.image if before else None)
        subnet_ids = find_subnets(account, [instance_type, str(template.head.instance_type)])
        ssh_from = address_range(wanted.ssh_from)
        bucket = ensure_bucket(account, wanted.bucket or (bucket_of(before) if before else None))
        group_id = ensure_group(account, subnet_ids[0], ssh_from)
        ensure_key_pair(account)
        policies = {"head": head_policy(names, bucket, group_id, subnet_ids), "worker": worker_policy(names, bucket)}
        are_new = [ensure_role(account, kind, policies[kind]) for kind in KINDS]
        if spot:
            ensure_spot_role(account)
        for is_spot in (True, False) if spot else (False,):
            if short := shortage(account, instance_type, size.num_cpus, is_spot):
                say(f"warning: {short}")
    ensure_token(account)
    contents = Contents(
        cluster=names.cluster,
        region=names.region,
        max_workers=wanted.max_workers or int((before or template).max_workers or 0),
        instance_type=instance_type,
        num_cpus=size.num_cpus,
        num_gpus=size.num_gpus,
        spot=spot,
        image=image.id,
        root_device=image.root_device,
        group_id=group_id,
        subnet_ids=subnet_ids,
        head_profile=names.role("head"),
        worker_profile=names.role("worker"),
        key_name=names.key_pair,
        private_key=private_key(account),
        store=f"s3://{bucket}/runs",
    )
    text = launcher_text(contents, wanted.output)
    if wanted.output.exists() and wanted.output.read_text() == text:
        account.found(str(wanted.output))
    else:
        verb = Verb.CHANGE if wanted.output.exists() else Verb.MAKE
        account.change(verb, str(wanted.output), lambda: write_launcher(wanted.output, text))
    if any(are_new) and not dry_run:
        say(f"waiting {SPREAD_SECONDS:.0f} s, until EC2 knows the new instance profiles")
        time.sleep(SPREAD_SECONDS)
    return account.changes


def destroy_cluster(file: Path, results: bool, say: Callable[[str], None], dry_run: bool = False) -> list[str]:
    """Remove what `init_cluster` made for the cluster of a launcher file, and nothing else. Return the changes.

    A bucket with results is removed only if `results` go too.
    """
    config, launcher = load_config(file), read_launcher(file)
    region = (config.get("provider") or {}).get("region")
    if launcher.provider != "aws" or not region:
        raise InvalidSettings([f"{file} is not of a cluster on AWS: name a file that orch cluster init wrote"])
    account = Account(str(config.get("cluster_name")), str(region), say, dry_run)
    with explained():
        if alive := _machines(account):
            raise OrchError(f"{', '.join(alive)} of this cluster are still up: run ray down {file} first")
        remove_group(account)
        remove_key_pair(account)
        for kind in KINDS:
            remove_role(account, kind)
        # An earlier file of this cluster may have had the bucket that init makes if it is given none.
        for bucket in dict.fromkeys([bucket_of(launcher), account.names.bucket]):
            if bucket and not is_placeholder(bucket):
                remove_bucket(account, bucket, results)
    return account.changes


def bucket_of(launcher: Launcher) -> str:
    """Return the name of the bucket that has the store; an empty text if there is none."""
    return (launcher.store or "").removeprefix("s3://").partition("/")[0]


def _machines(account: Account) -> list[str]:
    """List the machines of the cluster that have not ended."""
    states = ["pending", "running", "shutting-down", "stopping", "stopped"]
    pages = account.client("ec2").get_paginator("describe_instances")
    filters = [
        {"Name": f"tag:{RAY_TAG}", "Values": [account.names.cluster]},
        {"Name": "instance-state-name", "Values": states},
    ]
    return [
        str(machine["InstanceId"])
        for page in pages.paginate(Filters=filters)
        for reservation in page["Reservations"]
        for machine in reservation["Instances"]
    ]


def _check_project() -> None:
    """Raise an error unless the project is in the current folder, from which `ray up` ships it."""
    config = yaml.safe_load(TEMPLATE.read_text())
    config["file_mounts"] = {to: place for to, place in config["file_mounts"].items() if place != TOKEN}
    if any(check_shipping(from_config(TEMPLATE, config))):
        raise OrchError(
            "the project is not in this folder, and ray up ships it from here: run from the folder of a clone of orch"
        )
