"""The shape of a launcher file of `ray up`: what is read of it here, and on the head of a cluster.

Everything may be missing or empty, so that `orch cluster check` can list all that is; what is there has these types.
"""

from typing import Any, TypedDict


class NodeConfig(TypedDict, total=False):
    """A machine, in the words of AWS."""

    InstanceType: str | None
    ImageId: str | None
    KeyName: str | None
    SecurityGroupIds: list[str] | None
    NetworkInterfaces: list[dict[str, Any]] | None
    IamInstanceProfile: dict[str, str] | None
    InstanceMarketOptions: dict[str, Any] | None


class NodeTypeShape(TypedDict, total=False):
    """A type of machine."""

    node_config: NodeConfig | None
    resources: dict[str, float] | None
    min_workers: int | None
    max_workers: int | None


class Provider(TypedDict, total=False):
    """Where the machines come from."""

    type: str | None
    head_ip: str | None
    worker_ips: list[str] | None


class Auth(TypedDict, total=False):
    """How the machines are reached."""

    ssh_user: str | None
    ssh_private_key: str | None


class Docker(TypedDict, total=False):
    """The container that everything runs in, if there is one."""

    image: str | None
    worker_image: str | None
    run_options: list[str] | None
    worker_run_options: list[str] | None


class LauncherShape(TypedDict, total=False):
    """A launcher file."""

    provider: Provider | None
    auth: Auth | None
    docker: Docker | None
    available_node_types: dict[str, NodeTypeShape] | None
    head_node_type: str | None
    max_workers: int | None
    file_mounts: dict[str, str] | None
    rsync_exclude: list[str] | None
    initialization_commands: list[str] | None
    setup_commands: list[str] | None
    head_setup_commands: list[str] | None
    worker_setup_commands: list[str] | None
    head_start_ray_commands: list[str] | None
    worker_start_ray_commands: list[str] | None
