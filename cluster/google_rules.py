"""Rules for machines on Google Cloud, as far as its launcher file tells."""

import re
from collections.abc import Iterator

from orch.cluster.launcher import Launcher
from orch.cluster.placeholders import is_placeholder
from orch.cluster.prices import num_gpus
from orch.cluster.problem import Problem, error, warning

CLIENT = "google-api-python-client"
SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
WRITING = ("cloud-platform", "devstorage.full_control", "devstorage.read_write", "storage-full", "storage-rw")
"""Scopes with which a machine may write to a bucket, by their last part or their short name."""


def check_google(launcher: Launcher) -> Iterator[Problem]:
    """Report machines that would not start, that everybody could reach, or that could not reach the store."""
    for node in (launcher.head, *launcher.workers):
        if node is None:
            continue
        if node.subnetwork is None or node.subnetwork.rpartition("/")[2] == "default":
            yield error(
                f"{node.name} is in the default network, which opens ssh to everybody: set networkInterfaces to a"
                " subnetwork of your own"
            )
        if node.image is None or (not is_placeholder(node.image) and re.search(r"/family/", node.image)):
            yield error(f"{node.name} does not name one fixed image: set sourceImage to an image, not to a family")
        if num_gpus(node) and node.on_maintenance != "TERMINATE":
            yield error(
                f"{node.name} has GPUs and cannot be moved while it runs: set scheduling to"
                " {onHostMaintenance: TERMINATE}"
            )
    if (launcher.store or "").startswith("gs://"):
        for node in launcher.workers:
            if node.instance_profile is None:
                yield error(
                    f"{node.name} may not reach the store {launcher.store}: set serviceAccounts to one that may"
                )
            elif not any(scope.rpartition("/")[2] in WRITING for scope in node.scopes):
                yield error(
                    f"{node.name} may not write to the store {launcher.store}: give its serviceAccounts the scope"
                    f" {SCOPE}"
                )
    if launcher.region and launcher.zone and not launcher.zone.startswith(f"{launcher.region}-"):
        yield error(f"the zone {launcher.zone} is not in the region {launcher.region}: make them agree")
    if CLIENT not in launcher.setup:
        yield error(f"the head could start no workers: install {CLIENT} in head_setup_commands")
    kinds = {node.spot for node in launcher.workers}
    if len(kinds) == 2:
        yield warning(
            "Ray does not learn when Google Cloud has no spot machines, so on-demand ones would never be started"
            " instead: keep one of the two types"
        )
