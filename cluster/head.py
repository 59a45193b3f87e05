"""The machine that keeps a cluster together: where it is, and how ssh reaches it."""

import contextlib
import dataclasses
import io
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orch.cluster.launcher import Launcher, load_config
from orch.core.errors import OrchError

OPTIONS = {
    # A question for a password would wait for ever behind a sweep.
    "BatchMode": "yes",
    "ConnectTimeout": "15",
    # A connection of the user's own that is shared would keep a tunnel open after its end.
    "ControlPath": "none",
    "ExitOnForwardFailure": "yes",
    "LogLevel": "ERROR",
    "ServerAliveCountMax": "3",
    "ServerAliveInterval": "15",
    # As `ray up` does: machines of a cloud come back with other keys under addresses that were known.
    "StrictHostKeyChecking": "no",
    "UserKnownHostsFile": "/dev/null",
}


class HeadUnreachable(OrchError):
    """The head does not answer, or there is none."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """`container` is the one that Ray runs in, if it runs in one."""

    address: str
    user: str
    key: str | None = None
    proxy_command: str | None = None
    container: str | None = None

    def ssh(self, *options: str, command: str) -> list[str]:
        """The words that run a command on this machine."""
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
        """A command line in the environment in which Ray was started there: that of a shell for a person, which `ray
        up` uses too. What such a shell has to say about itself is not shown."""
        inside = f"source ~/.bashrc; exec 2>&3; {shlex.join(words)}"
        command = f"bash --login -i -c {shlex.quote(inside)} 3>&2 2> /dev/null"
        if self.container is None:
            return command
        return f"docker exec -i{'t' * terminal} {shlex.quote(self.container)} bash -c {shlex.quote(command)}"


def find_head(launcher: Launcher) -> Head:
    """The head of a cluster that is up."""
    if launcher.provider == "slurm":
        raise HeadUnreachable(
            f"{launcher.path} makes a cluster for one sweep: start it with sbatch {launcher.path} SWEEP…, and use"
            " --store for what came of it"
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
    """The head's address, and how to log in with the key that `ray up` made. Ray prints advice of its own meanwhile."""
    from ray.autoscaler._private.commands import _bootstrap_config, get_head_node_ip

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            address = get_head_node_ip(str(path))
            auth = _bootstrap_config(config)["auth"]
        except Exception as error:  # the provider's own, of any kind: no credentials, no such cluster, no network
            why = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            raise HeadUnreachable(f"no head of {path} was found ({why}): start it with ray up {path}") from None
    return address, auth
