"""Rules for a cluster's machines: they start, they are the intended ones, and they cost no more than intended."""

import difflib
import importlib.util
import re
from collections.abc import Iterator

from orch.cluster.google_rules import check_google
from orch.cluster.launcher import Launcher, NodeType
from orch.cluster.placeholders import is_placeholder
from orch.cluster.prices import INSTANCES, num_gpus
from orch.cluster.problem import Problem, error, warning

SPOT_FIRST = ("RAY_enable_autoscaler_v2=0", "RAY_AUTOSCALER_UTILIZATION_SCORER=orch.cluster.spot_first.score")


def check_machines(launcher: Launcher) -> Iterator[Problem]:
    """Report machines that would not start, are not the intended ones, or cost more than intended."""
    if launcher.provider == "aws":
        yield from _check_workers(launcher)
        yield from _check_aws(launcher)
    elif launcher.provider == "gcp":
        yield from _check_workers(launcher)
        yield from check_google(launcher)
    elif launcher.provider == "local":
        yield from _check_addresses(launcher)
    elif launcher.provider != "slurm":
        yield warning(
            f"the provider {launcher.provider!r} is unknown here: its GPUs, prices and firewall are not checked"
        )
    if launcher.provider != "slurm" and "--autoscaling-config" not in launcher.head_start:
        yield error(
            "the head would start no workers: start Ray there with --autoscaling-config=~/ray_bootstrap_config.yaml"
        )
    if launcher.docker_image and not is_placeholder(launcher.docker_image):
        tag = launcher.docker_image.rpartition("/")[2].partition(":")[2]
        if not re.match(r"v?\d", tag) and "@sha256:" not in launcher.docker_image:
            yield error(f"the image {launcher.docker_image} changes under its name: pin one by its version")


def _check_workers(launcher: Launcher) -> Iterator[Problem]:
    """Check what every cloud has: a head that runs no trials, workers with GPUs, numbers that agree."""
    if launcher.head is not None:
        yield from _check_head(launcher.head, launcher.head_start)
    if not launcher.workers:
        yield error("the file has no type of worker: add one beside the head, as in cluster/a100.yaml")
    elif not any(num_gpus(worker) for worker in launcher.workers):
        yield warning("no type of worker has a GPU: trials at the paper's scale would wait forever")
    for node in (launcher.head, *launcher.workers):
        if node is not None:
            yield from _check_resources(node)
    yield from _check_numbers(launcher)


def _check_aws(launcher: Launcher) -> Iterator[Problem]:
    if launcher.region and importlib.util.find_spec("botocore") is not None:
        import botocore.session

        aws = botocore.session.Session()
        known = [name for part in aws.get_available_partitions() for name in aws.get_available_regions("ec2", part)]
        if launcher.region not in known:
            close = difflib.get_close_matches(launcher.region, known, n=1)
            remedy = f"did you mean {close[0]}?" if close else "use one such as us-east-1"
            yield error(f"there is no AWS region {launcher.region}: {remedy}")
    for node in (launcher.head, *launcher.workers):
        if node is not None:
            yield from _check_instance(node, own_key=bool(launcher.ssh_private_key))
    yield from _check_store_role(launcher)
    yield from _check_spot(launcher)


def _check_head(head: NodeType, start: str) -> Iterator[Problem]:
    if head.num_cpus != 0 and not re.search(r"--num-cpus[=\s]+0\b", start):
        yield error("the head would run trials and starve the driver: give it resources: {CPU: 0}")
    if head.spot:
        yield error("the head is a spot instance, and the sweep ends with it: make it an on-demand one")


def _check_instance(node: NodeType, own_key: bool) -> Iterator[Problem]:
    if not node.security_groups:
        yield error(
            f"{node.name} names no security group, and the one that Ray makes opens ssh to everybody: "
            "set SecurityGroupIds to one of your own"
        )
    if node.image is None:
        yield error(f"{node.name} names no image, and Ray takes Ubuntu 18.04, too old for torch: set ImageId")
    elif not is_placeholder(node.image) and not re.fullmatch(r"ami-[0-9a-f]{8,17}", node.image):
        yield error(
            f"{node.name} has the image {node.image}, which is not one fixed image: set ImageId to an id, ami-…"
        )
    if own_key and node.key_name is None:
        yield error(f"{node.name} has no KeyName to go with ssh_private_key: set it, or leave ssh_private_key to Ray")
    if node.instance_type is None:
        yield error(f"{node.name} has no InstanceType: set one, such as p4d.24xlarge")


def _check_resources(node: NodeType) -> Iterator[Problem]:
    """Compare the CPUs and GPUs that the file declares with those that the machine has."""
    if node.instance_type is None:
        return
    instance = INSTANCES.get(node.instance_type)
    if instance is None:
        yield warning(
            f"{node.instance_type} is not in the table of cluster/prices.py: its GPUs and price are unchecked"
        )
        return
    if node.num_gpus is not None and node.num_gpus != instance.num_gpus:
        declared = f"{node.name} declares {node.num_gpus} GPUs and {node.instance_type} has {instance.num_gpus}"
        yield error(f"{declared}: correct its resources")
    if node.num_cpus is not None and node.num_cpus > instance.num_cpus:
        declared = f"{node.name} declares {node.num_cpus} CPUs and {node.instance_type} has {instance.num_cpus}"
        yield error(f"{declared}: correct its resources")


def _check_store_role(launcher: Launcher) -> Iterator[Problem]:
    if (launcher.store or "").startswith("s3://"):
        for node in launcher.workers:
            if node.instance_profile is None:
                yield error(
                    f"{node.name} may not reach the store {launcher.store}: set IamInstanceProfile to one that may"
                )


def _check_numbers(launcher: Launcher) -> Iterator[Problem]:
    if launcher.max_workers is None:
        yield error("max_workers is not set, and Ray takes 2: set it to the number of machines you want at most")
        return
    if launcher.max_workers < 1:
        yield error(f"max_workers {launcher.max_workers} lets no worker start: raise it")
    for node in launcher.workers:
        if node.max_workers is not None and node.max_workers > launcher.max_workers >= 1:
            wanted = f"{node.name} wants up to {node.max_workers} machines and max_workers is {launcher.max_workers}"
            yield error(f"{wanted}: make them agree")
        if node.max_workers == 0:
            yield error(f"{node.name} has max_workers 0 and never starts: raise it")
        if node.min_workers > 0:
            idle = f"{node.min_workers} of {node.name} are paid for even when there is nothing to do"
            yield warning(f"{idle}: use min_workers 0")


def _check_spot(launcher: Launcher) -> Iterator[Problem]:
    spot = [node for node in launcher.workers if node.spot]
    if spot and len(spot) == len(launcher.workers):
        yield warning(
            "all workers are spot, so the sweep waits while there are none: add an on-demand type as fallback"
        )
    elif spot and not all(setting in launcher.head_start for setting in SPOT_FIRST):
        asking = "while no spot machines are available, Ray keeps asking for them"
        yield warning(f"{asking}: start the head with {' '.join(SPOT_FIRST)}")
    for node in launcher.workers:
        if node.spot != ("spot" in node.name):
            named = f"{node.name} is {'spot' if node.spot else 'on demand'} and cluster/spot_first.py goes by the name"
            yield warning(f"{named}: let it say so")


def _check_addresses(launcher: Launcher) -> Iterator[Problem]:
    """Check machines reached by ssh. Ray's newer autoscaler treats them as lost and adds them over and over."""
    known = [address for address in (launcher.head_address, *launcher.worker_addresses) if not is_placeholder(address)]
    for address in sorted({str(address) for address in known if known.count(address) > 1}):
        yield error(f"{address} stands in head_ip and worker_ips more than once: name each machine once")
    if not launcher.worker_addresses:
        yield warning("worker_ips is empty: the head works alone")
    elif launcher.max_workers is not None and launcher.max_workers < len(launcher.worker_addresses):
        listed = f"{len(launcher.worker_addresses)} machines are listed and max_workers is {launcher.max_workers}"
        yield error(f"{listed}: leave max_workers out")
    if "RAY_enable_autoscaler_v2=0" not in launcher.head_start:
        yield error(
            "the workers would never join under Ray's newer autoscaler: start the head with RAY_enable_autoscaler_v2=0"
        )
