"""Placeholders (EDIT-ME) that a launcher file still contains."""

import re
from collections.abc import Iterator
from typing import Any

from orch.cluster.problem import Problem, error

PLACEHOLDER = re.compile(r"EDIT-?ME|REPLACE-?ME|<[\w -]*your[\w -]*>|-REPLACE\b", re.IGNORECASE)

REMEDIES = {
    "ImageId": "put the id of the image; the comment above it has the command that finds it",
    "SecurityGroupIds": "put the id of a group of yours that lets in ssh from your address, and everything from itself",
    "IamInstanceProfile": "put the name of the instance profile that lets these machines reach the store",
    "ORCH_STORE": "put a place that every machine can reach, such as s3://bucket/runs",
    "head_ip": "put the address of the machine that will be the head",
    "worker_ips": "put the addresses of the other machines",
    "ssh_user": "put the name that you log in with",
    "ssh_private_key": "put the key that opens the machines",
    "image": "put the registry that you push the image to; the comment at the top of cluster/Dockerfile builds it",
    "serviceAccountName": "put a service account that lets the pods reach the store",
    "project_id": "put the id of your project on Google Cloud",
    "sourceImage": "put the name of the image; the comment above it has the command that finds it",
    "subnetwork": "put a subnetwork of yours whose firewall lets in ssh from your address, and everything from itself",
    "email": "put the service account that lets these machines reach the store",
    "partition": "put the name of a partition with GPUs; sinfo lists them",
}


def is_placeholder(value: str | None) -> bool:
    """Return whether a value contains a placeholder."""
    return bool(value and PLACEHOLDER.search(value))


def missing_edits(content: Any) -> Iterator[Problem]:
    """Report each placeholder that is left in the settings of a launcher file or in the text of a script."""
    seen = set()
    for name, value in _values("", content):
        for word in re.findall(r"[^\s'\"]+", value):
            if is_placeholder(word):
                key, _, rest = word.lstrip("-").partition("=")
                found = (key, rest) if rest else (name, word)
                if found not in seen:
                    seen.add(found)
                    remedy = REMEDIES.get(found[0], "put what fits your machines")
                    yield error(f"{found[0]} is still {found[1]}: {remedy}")


def _values(name: str, content: Any) -> Iterator[tuple[str, str]]:
    """Yield every text with the name of its setting. Below a name that has a remedy, that name is kept."""
    if isinstance(content, dict) and content.keys() == {"name", "value"}:  # a variable of a container
        yield from _values(str(content["name"]), content["value"])
    elif isinstance(content, dict):
        for key, value in content.items():
            yield from _values(name if name in REMEDIES else str(key), value)
    elif isinstance(content, list):
        for value in content:
            yield from _values(name, value)
    elif isinstance(content, str):
        yield name, content
