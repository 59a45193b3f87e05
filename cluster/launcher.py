"""A launcher file as data: which machines, where, how many, with which versions and which store.

Reading is lenient, so that `check` can report every problem at once: a missing value reads as None or as empty.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orch.cluster.versions import Versions, find_versions
from orch.core import reading
from orch.core.errors import InvalidSettings
from orch.core.launcher_shape import LauncherShape
from orch.core.shape import problems

LOCAL_NODE = "local.cluster.node"
"""Ray's name for the only node type of its `local` provider (machines reached by ssh)."""
SETUP_COMMANDS = ("initialization_commands", "setup_commands", "head_setup_commands", "worker_setup_commands")
STORE = r"ORCH_STORE=[\"']?([^\s\"';]+)"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class NodeType:
    """A node type of the file. `num_gpus` and `num_cpus` are None where the file leaves them to Ray."""

    name: str
    instance_type: str | None
    num_gpus: int | None
    num_cpus: int | None
    min_workers: int
    max_workers: int | None
    spot: bool
    image: str | None
    security_groups: tuple[str, ...]
    instance_profile: str | None
    key_name: str | None
    subnetwork: str | None = None
    """The network of a machine on Google Cloud."""
    on_maintenance: str | None = None
    """What Google Cloud does with a machine when its host is maintained."""
    scopes: tuple[str, ...] = ()
    """What Google Cloud lets the machine's service account do from there."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Launcher:
    """The contents of a launcher file. `head` and `workers` are empty where the file does not describe the machines."""

    path: Path
    provider: str
    max_workers: int | None
    store: str | None
    versions: Versions
    head_start: str
    worker_start: str
    setup: str = ""
    head: NodeType | None = None
    workers: tuple[NodeType, ...] = ()
    region: str | None = None
    zone: str | None = None
    """The zone of a cloud in which machines are started; None if any will do."""
    head_address: str | None = None
    worker_addresses: tuple[str, ...] = ()
    ssh_private_key: str | None = None
    docker_image: str | None = None
    file_mounts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    excluded: tuple[str, ...] = ()

    @property
    def preferred_worker(self) -> NodeType | None:
        """The node type that is started first: spot, if the file has one."""
        return max(self.workers, key=lambda worker: worker.spot, default=None)

    @property
    def commands(self) -> str:
        """All commands that run on the machines."""
        return "\n".join((self.setup, self.head_start, self.worker_start))


PACKAGED = Path(__file__).parent
"""The folder of the launcher files that come with orch."""


def read_launcher(path: Path | str) -> Launcher:
    """Read a launcher file: YAML for `ray up`, or a Slurm script.

    Where there is no cluster/a100.yaml or the like in the current folder, the file of that name that comes with orch is
    meant.
    """
    path = Path(path)
    packaged = PACKAGED / path.name
    if not path.exists() and path.parent in (Path(), Path("cluster")) and packaged.exists():
        path = packaged
    if path.suffix == ".sh":
        return _from_script(path, read_text(path))
    return from_config(path, load_config(path))


def read_text(path: Path) -> str:
    """Return the text of a launcher file, or raise an error that names it."""
    try:
        return reading.read_text(path, reading.LAUNCHER_BYTES)
    except (OSError, ValueError) as error:
        remedy = f"name a launcher file; those that come with orch are in {PACKAGED}"
        raise InvalidSettings([f"{path} cannot be read ({error}): {remedy}"]) from None


def load_config(path: Path) -> dict[str, Any]:
    """Load the settings of a YAML launcher file, or raise an error that lists everything that is of a wrong type."""
    config = load_yaml(path)
    if wrong := shape_problems(config):
        raise InvalidSettings([f"{path}: {problem}" for problem in wrong])
    return config


def shape_problems(config: Mapping[str, Any]) -> list[str]:
    """List the settings of a launcher file that are of a wrong type, such as a text in the place of a number."""
    return [f"{problem}: correct it" for problem in problems(config, LauncherShape, "the file")]


def load_yaml(path: Path) -> dict[str, Any]:
    """Load the settings of a YAML launcher file, of whatever types they are."""
    text = read_text(path)
    try:
        config = reading.parse_yaml(text)
    except reading.Refused as reason:
        raise InvalidSettings([f"{path} cannot be used ({reason}): correct it there"]) from None
    if not isinstance(config, dict):
        raise InvalidSettings([f"{path} has no settings: start from cluster/a100.yaml or cluster/local.yaml"])
    return config


def from_config(path: Path, config: Mapping[str, Any]) -> Launcher:
    """Build a launcher from the settings of a YAML file."""
    provider, auth = _mapping(config.get("provider")), _mapping(config.get("auth"))
    docker = _mapping(config.get("docker"))
    types = {
        str(name): _node_type(str(name), _mapping(values))
        for name, values in _mapping(config.get("available_node_types")).items()
        if name != LOCAL_NODE
    }
    mounts = {str(remote): str(local) for remote, local in _mapping(config.get("file_mounts")).items()}
    options = _lines(docker.get("run_options")) + _lines(docker.get("worker_run_options"))
    commands = _commands(config, *SETUP_COMMANDS)
    setup = "\n".join((commands, *options, *_scripts(commands, mounts)))
    head_start = _commands(config, "head_start_ray_commands")
    worker_start = _commands(config, "worker_start_ray_commands")
    image = docker.get("worker_image") or docker.get("image") or None
    text = "\n".join((setup, head_start, worker_start))
    return Launcher(
        path=path,
        provider=str(provider.get("type", "")),
        max_workers=_integer(config.get("max_workers")),
        store=_found(STORE, text),
        versions=find_versions(text, image),
        head_start=head_start,
        worker_start=worker_start,
        setup=setup,
        head=types.get(str(config.get("head_node_type"))),
        workers=tuple(node for name, node in types.items() if name != config.get("head_node_type")),
        region=provider.get("region"),
        zone=provider.get("availability_zone"),
        head_address=provider.get("head_ip"),
        worker_addresses=tuple(_lines(provider.get("worker_ips"))),
        ssh_private_key=auth.get("ssh_private_key"),
        docker_image=image,
        file_mounts=mounts,
        excluded=tuple(_lines(config.get("rsync_exclude"))),
    )


def _from_script(path: Path, text: str) -> Launcher:
    if not re.search(r"^#SBATCH ", text, re.MULTILINE):
        raise InvalidSettings([f"{path} is no launcher file: a Slurm script has lines that begin with #SBATCH"])
    script = without_comments(text)
    return Launcher(
        path=path,
        provider="slurm",
        max_workers=_integer(_found(r"#SBATCH --nodes=(\d+)", script)),
        store=_found(STORE, script),
        versions=find_versions(script, None),
        head_start=script,
        worker_start=script,
    )


def _node_type(name: str, values: Mapping[str, Any]) -> NodeType:
    machine, resources = _mapping(values.get("node_config")), _mapping(values.get("resources"))
    if "machineType" in machine:
        return _google_node_type(name, values, machine)
    groups = _lines(machine.get("SecurityGroupIds"))
    for interface in machine.get("NetworkInterfaces") or []:
        groups += _lines(_mapping(interface).get("Groups"))
    profile = _mapping(machine.get("IamInstanceProfile"))
    return NodeType(
        name=name,
        instance_type=machine.get("InstanceType"),
        num_gpus=_integer(resources.get("GPU")),
        num_cpus=_integer(resources.get("CPU")),
        min_workers=_integer(values.get("min_workers")) or 0,
        max_workers=_integer(values.get("max_workers")),
        spot=_mapping(machine.get("InstanceMarketOptions")).get("MarketType") == "spot",
        image=machine.get("ImageId"),
        security_groups=tuple(groups),
        instance_profile=profile.get("Name") or profile.get("Arn"),
        key_name=machine.get("KeyName"),
    )


def _google_node_type(name: str, values: Mapping[str, Any], machine: Mapping[str, Any]) -> NodeType:
    resources, schedule = _mapping(values.get("resources")), _mapping(machine.get("scheduling"))
    disk, interface, account = (_first(machine.get(key)) for key in ("disks", "networkInterfaces", "serviceAccounts"))
    return NodeType(
        name=name,
        instance_type=str(machine["machineType"]).rpartition("/")[2],
        num_gpus=_integer(resources.get("GPU")),
        num_cpus=_integer(resources.get("CPU")),
        min_workers=_integer(values.get("min_workers")) or 0,
        max_workers=_integer(values.get("max_workers")),
        spot=schedule.get("provisioningModel") == "SPOT" or bool(schedule.get("preemptible")),
        image=_mapping(disk.get("initializeParams")).get("sourceImage"),
        security_groups=(),
        instance_profile=account.get("email"),
        key_name=None,
        subnetwork=interface.get("subnetwork"),
        on_maintenance=schedule.get("onHostMaintenance"),
        scopes=tuple(_lines(account.get("scopes"))),
    )


def without_comments(script: str) -> str:
    """Remove comment lines. Slurm's #SBATCH lines are directives, so they stay."""
    return "\n".join(line for line in script.splitlines() if not re.match(r"\s*#(?!SBATCH)", line))


def _scripts(commands: str, mounts: Mapping[str, str]) -> Iterator[str]:
    """Yield the text of each shipped script that the commands call, without its comments."""
    for remote, local in mounts.items():
        for inside in re.findall(rf"{re.escape(remote)}(/\S+\.sh)\b", commands):
            script = Path(local).expanduser() / inside.lstrip("/")
            if script.is_file():
                yield without_comments(read_text(script))


def _commands(config: Mapping[str, Any], *names: str) -> str:
    return "\n".join(line for name in names for line in _lines(config.get(name)))


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match[1] if match else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _first(value: Any) -> Mapping[str, Any]:
    return _mapping(value[0]) if isinstance(value, list) and value else {}


def _lines(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _integer(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None
