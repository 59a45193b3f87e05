"""The head of a cluster: its address, and how ssh reaches it."""

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orch.cluster.launcher import Launcher, load_config
from orch.cluster.problem import muted, quoted
from orch.core.errors import OrchError

OPTIONS = {
    # Without this, an invisible password prompt would wait forever.
    "BatchMode": "yes",
    "ConnectTimeout": "15",
    # A shared connection (ControlMaster) would keep the tunnel open after this process ends.
    "ControlPath": "none",
    "ExitOnForwardFailure": "yes",
    "LogLevel": "ERROR",
    "ServerAliveCountMax": "3",
    "ServerAliveInterval": "15",
    # As `ray up` does: cloud machines reuse addresses with new host keys.
    "StrictHostKeyChecking": "no",
    "UserKnownHostsFile": "/dev/null",
}


class HeadUnreachable(OrchError):
    """Raised when the head does not answer, or when no head exists."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The address of the head and the login. `container` names the Docker container that Ray runs in, if any."""

    address: str
    user: str
    key: str | None = None
    proxy_command: str | None = None
    container: str | None = None

    def ssh(self, *options: str, command: str) -> list[str]:
        """Build the ssh command line that runs `command` on the head."""
        settings = dict(OPTIONS)
        if self.proxy_command:
            settings["ProxyCommand"] = self.proxy_command
        words = ["ssh", *options]
        if self.key:
            settings["IdentitiesOnly"] = "yes"
            words += ["-i", str(Path(self.key).expanduser())]
        for name, value in settings.items():
            words += ["-o", f"{name}={value}"]
        return [*words, f"{self.user}@{self.address}", command]

    def shell(self, words: Sequence[str], terminal: bool) -> str:
        """Build a command line that runs `words` in an interactive login shell, as `ray up` started Ray.

        Messages of the shell itself are discarded.
        """
        inside = f"source ~/.bashrc; exec 2>&3; {shlex.join(words)}"
        command = f"bash --login -i -c {shlex.quote(inside)} 3>&2 2> /dev/null"
        if self.container is None:
            return command
        return f"docker exec -i{'t' * terminal} {shlex.quote(self.container)} bash -c {shlex.quote(command)}"


def find_head(launcher: Launcher) -> Head:
    """Find the head of a running cluster."""
    if launcher.provider == "slurm":
        raise HeadUnreachable(
            f"{launcher.path} makes a cluster for one sweep: start it with sbatch {launcher.path} SWEEP…, and read"
            " its results with --store"
        )
    if launcher.provider == "kuberay":
        raise HeadUnreachable(
            f"{launcher.path} is for Kubernetes, which --on does not reach: kubectl create -f {launcher.path} runs its"
            " command; read the results with --store"
        )
    config = load_config(launcher.path)
    address, auth = launcher.head_address, config.get("auth") or {}
    if address is None:
        address, auth = _ask_provider(launcher.path, config)
    return Head(
        address=address,
        user=str(auth.get("ssh_user")),
        key=auth.get("ssh_private_key"),
        proxy_command=auth.get("ssh_proxy_command"),
        container=(config.get("docker") or {}).get("container_name") if launcher.docker_image else None,
    )


def _ask_provider(path: Path, config: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Ask the cloud provider for the head's address and the login that `ray up` created, with Ray's output muted."""
    from ray.autoscaler._private.commands import _bootstrap_config, get_head_node_ip

    with muted():
        try:
            address = get_head_node_ip(str(path))
            auth = _bootstrap_config(config)["auth"]
        except Exception as error:  # providers raise errors of any type: no credentials, no such cluster, no network
            raise HeadUnreachable(
                f"no head of {path} was found ({quoted(error)}): start it with ray up {path}"
            ) from None
    return address, auth
