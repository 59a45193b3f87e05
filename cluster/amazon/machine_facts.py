"""Facts that AWS tells about machines before any is started: the image to boot, and the size of an instance type."""

import dataclasses

from orch.cluster.amazon.account import Account, absent
from orch.core.errors import InvalidSettings, OrchError

IMAGE = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id"
"""The parameter of AWS's Deep Learning Base image in each region: Ubuntu 24.04 with NVIDIA's driver."""
ARCHITECTURE = "x86_64"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """An image, with the device of its root disk."""

    id: str
    root_device: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """The size of an instance type."""

    num_cpus: int
    num_gpus: int


def find_image(account: Account, wanted: str | None, known: str | None = None) -> Image:
    """Find the image: an id (ami-…), or the id that a parameter of AWS's parameter store has now.

    If none is `wanted`, a `known` one is kept while it exists: a launcher file names one fixed image, because all
    machines of a cluster must have the same one, weeks apart too.
    """
    if wanted is None and known is not None and (image := _image(account, known)) is not None:
        return image
    image_id = wanted or IMAGE
    if not image_id.startswith("ami-"):
        name = image_id.removeprefix("resolve:ssm:")
        found = absent(lambda: account.client("ssm").get_parameter(Name=name))
        if found is None:
            raise OrchError(f"{account.region} has no parameter {name}: give an image's id with --image")
        image_id = found["Parameter"]["Value"]
    image = _image(account, image_id)
    if image is None:
        raise OrchError(f"{account.region} has no image {image_id}: give another with --image")
    return image


def _image(account: Account, image_id: str) -> Image | None:
    filters = [{"Name": "image-id", "Values": [image_id]}]
    # AWS hides images that it has replaced by newer ones, and machines still start with them.
    images = account.client("ec2").describe_images(Filters=filters, IncludeDeprecated=True)["Images"]
    if not images:
        return None
    architecture = images[0].get("Architecture", ARCHITECTURE)
    if architecture != ARCHITECTURE:
        raise OrchError(f"the image {image_id} is for {architecture}: give one for {ARCHITECTURE} with --image")
    return Image(id=image_id, root_device=images[0].get("RootDeviceName") or "/dev/sda1")


def find_size(account: Account, instance_type: str) -> Size:
    """Return the CPUs and GPUs of an instance type."""
    filters = [{"Name": "instance-type", "Values": [instance_type]}]
    found = account.client("ec2").describe_instance_types(Filters=filters)["InstanceTypes"]
    if not found:
        raise InvalidSettings([f"{account.region} has no {instance_type}: choose another --instance-type or --region"])
    facts = found[0]
    architectures = facts.get("ProcessorInfo", {}).get("SupportedArchitectures", [ARCHITECTURE])
    if ARCHITECTURE not in architectures:
        raise InvalidSettings(
            [f"{instance_type} is {' and '.join(architectures)}, and the wheels are for {ARCHITECTURE}: choose another"]
        )
    gpus = facts.get("GpuInfo", {}).get("Gpus", ())
    return Size(num_cpus=facts["VCpuInfo"]["DefaultVCpus"], num_gpus=sum(each["Count"] for each in gpus))
