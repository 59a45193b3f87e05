"""Several hosts on one machine, each with a network, processes, mounts, a name and a home of its own, and an sshd.

They hang on a switch of their own: this machine's network is out of their reach, and they out of its. What is on the
disk they share, but for /tmp, /run and /dev/shm. A host lives as long as its first process, which ends when its
standard input does, so nothing outlives the process that made it, however that ends.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).parents[2]
USER = "root"
NETWORK = "10.77.0"
TOOLS = {
    "ip": "iproute2",
    "iptables": "iptables",
    "nsenter": "util-linux",
    "rsync": "rsync",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
    "tc": "iproute2",
    "unshare": "util-linux",
}
"""What making hosts and `ray up` take, and the Debian package that has it."""

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
UNSHARE = ["unshare", "--net", "--pid", "--mount", "--uts", "--ipc", "--fork", "--mount-proc"]

SWITCH = f"""
echo 1 > /proc/sys/net/ipv4/ip_forward  # so that whoever wants to leave is told at once that there is no way
ip link add switch type bridge && ip address add {NETWORK}.1/24 dev switch && ip link set switch up
echo up
exec cat
"""

BOOT = """
set -e
name=$1 address=$2 network=$3 folder=$4; shift 4
echo "$name" > /proc/sys/kernel/hostname
# A new /tmp, in which the folders given are still where they were.
mount -t tmpfs tmpfs "$folder/$name/tmp"
chmod 1777 "$folder/$name/tmp"
for kept in "$@"; do
    mkdir -p "$folder/$name$kept"
    mount --bind "$kept" "$folder/$name$kept"
done
mount --rbind "$folder/$name/tmp" /tmp
mount -t tmpfs tmpfs /run
mkdir /run/sshd
mount -t tmpfs tmpfs /dev/shm
mount --bind "$folder/hosts" /etc/hosts
mount --bind "$folder/$name/passwd" /etc/passwd
mount --bind /dev/null /etc/resolv.conf
echo born
read -r plugged_in
ip link set lo up
ip address add "$address/24" dev eth0
ip link set eth0 up
ip route add default via "$network.1"
"$SSHD" -f "$folder/sshd_config" -E /tmp/sshd.log
until (: < /dev/tcp/127.0.0.1/22) 2> /dev/null; do sleep 0.02; done
echo up
cat
exit  # or bash would become cat, and nobody would collect the processes whose parents have gone
"""


def missing() -> str | None:
    """Why this machine cannot make hosts; nothing if it can."""
    if os.geteuid() != 0:
        return "needs root, to make hosts out of namespaces"
    lacking = sorted({package for tool, package in TOOLS.items() if shutil.which(tool, path=PATH) is None})
    if lacking:
        return f"needs {', '.join(lacking)}, to make hosts that are reached by ssh"
    script = "ip link add one type bridge && ip link add two type veth peer name three && mount -t tmpfs tmpfs /run"
    tried = subprocess.run([*UNSHARE, "sh", "-c", script], capture_output=True, text=True, env=_environment())
    if tried.returncode != 0:
        return f"needs a machine that allows namespaces, bridges and mounts: {tried.stderr.strip()}"
    return None


class Hosts:
    """`outside` (the user's own machine), `head`, and `worker1`, `worker2`, …, until the `with` ends.

    Log in with `key` as `user`; every host may log in to every other. `environment` is set in every login. `folder` is
    seen by all of them and from here under the same path.
    """

    def __init__(self, num_workers: int, environment: Mapping[str, str] | None = None):
        self.outside, self.head = "outside", "head"
        self.workers = [f"worker{number + 1}" for number in range(num_workers)]
        names = [self.outside, self.head, *self.workers]
        self.addresses = {name: f"{NETWORK}.{number + 2}" for number, name in enumerate(names)}
        self.user = USER
        self._environment = dict(environment or {})
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._logins: list[subprocess.Popen[str]] = []

    @property
    def key(self) -> Path:
        return self._private / "key"

    def home(self, name: str) -> Path:
        return self._private / name / "home"

    def __enter__(self) -> "Hosts":
        self._private = Path(tempfile.mkdtemp(prefix="orch-hosts-"))
        self.folder = self._private / "shared"
        try:
            self.folder.mkdir()
            self._write_files()
            self._begin("switch", ["unshare", "--net", "sh", "-c", SWITCH])
            self._answer("switch", "up")
            for name in self.addresses:
                self.start(name)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in [*self.addresses, "switch"]:
            if name in self._processes:
                self._end(name)
        for login in self._logins:
            login.kill()
            login.communicate()
        shutil.rmtree(self._private, ignore_errors=True)

    def start(self, name: str) -> None:
        """Switch a host on. Its disk is as it was, its memory and /tmp are empty."""
        kept = [path for path in _kept(self._private) if path.is_relative_to("/tmp")]
        address = self.addresses[name]
        self._begin(
            name, [*UNSHARE, "bash", "-c", BOOT, "boot", name, address, NETWORK, str(self._private), *map(str, kept)]
        )
        self._answer(name, "born")
        # Always the same hardware address, or the others would look for a host that came back at the one it had.
        peer = ["name", "eth0", "address", f"02:00:00:00:00:{int(address.split('.')[-1]):02x}"]
        own = str(self._processes[name].pid)
        self._on_switch("ip", "link", "add", name, "type", "veth", "peer", *peer, "netns", own)
        self._on_switch("ip", "link", "set", name, "master", "switch", "up")
        self._tell(name, "plugged in")
        self._answer(name, "up")

    def kill(self, name: str) -> None:
        """As when a machine loses power: no process of it says another word, nor does its network."""
        self._on_switch("ip", "link", "delete", name)
        self._end(name)

    def set_plugged(self, name: str, plugged: bool) -> None:
        """Pull a host's network cable out, or plug it in again. Its processes go on."""
        self._on_switch("ip", "link", "set", name, "up" if plugged else "down")

    def drop(self, name: str, share: float, sender: str | None = None) -> None:
        """Lose a share of the packets that reach a host, of all or of one sender, which still receives its own."""
        source = ["-s", self.addresses[sender]] if sender else []
        lost = ["-m", "statistic", "--mode", "random", "--probability", f"{share:.3f}"] if share < 1.0 else []
        self._on_host(name, "iptables", "-A", "INPUT", "-i", "eth0", *source, *lost, "-j", "DROP")

    def drop_nothing(self, name: str) -> None:
        """Let all packets reach a host again."""
        self._on_host(name, "iptables", "-F", "INPUT")

    def slow_down(self, name: str, kilobits: int) -> None:
        """Limit what a host can send in a second."""
        limit = ["rate", f"{kilobits}kbit", "burst", "16kb", "latency", "2s"]
        self._on_host(name, "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *limit)

    def speed_up(self, name: str) -> None:
        """Take a limit away."""
        self._on_host(name, "tc", "qdisc", "del", "dev", "eth0", "root")

    def login(self, name: str, command: str) -> subprocess.Popen[str]:
        """Start a command on a host, through ssh."""
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": "10",
            "LogLevel": "ERROR",
            "StrictHostKeyChecking": "no",
            "UserKnownHostsFile": "/dev/null",
        }
        words = ["ssh", "-i", str(self.key)]
        for key, value in options.items():
            words += ["-o", f"{key}={value}"]
        process = subprocess.Popen(
            [*self._enter_switch(), *words, f"{self.user}@{self.addresses[name]}", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        self._logins.append(process)
        return process

    def run(self, name: str, command: str, expect: int = 0, seconds: float = 120.0) -> str:
        """What a command on a host, through ssh, has to say."""
        process = self.login(name, command)
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            output, errors = process.communicate()
            errors += f"\n(no end after {seconds:g} s)"
        assert process.returncode == expect, f"{command} on {name} ended with {process.returncode}:\n{output}{errors}"
        return output

    def _write_files(self) -> None:
        folder = self._private
        for name in ("key", "host_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in self.addresses.items())]
        (folder / "hosts").write_text("\n".join(lines) + "\n")
        settings = {
            "HostKey": folder / "host_key",
            "AuthorizedKeysFile": folder / "key.pub",
            "PasswordAuthentication": "no",
            "PermitRootLogin": "prohibit-password",
            "StrictModes": "no",
            "UsePAM": "no",
            "PidFile": "none",
        }
        (folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        variables = self._environment | {"PATH": f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"}
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
        accounts = Path("/etc/passwd").read_text().splitlines(keepends=True)
        others = [line for line in accounts if not line.startswith(f"{USER}:")]
        for name in self.addresses:
            self.home(name).mkdir(parents=True)
            (folder / name / "tmp").mkdir()
            (self.home(name) / ".bashrc").write_text(exports)
            account = f"{USER}:x:0:0:{USER}:{self.home(name)}:/bin/bash\n"
            (folder / name / "passwd").write_text("".join([account, *others]))

    def _begin(self, name: str, words: list[str]) -> None:
        self._processes[name] = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=_environment(),
        )

    def _end(self, name: str) -> None:
        """End a host's first process, and with it, before the wait is over, all its others."""
        process = self._processes.pop(name)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if process.poll() is None:
            for child in children.read_text().split() or [str(process.pid)]:
                os.kill(int(child), signal.SIGKILL)
        process.communicate()

    def _tell(self, name: str, line: str) -> None:
        pipe = self._processes[name].stdin
        assert pipe is not None
        pipe.write(line + "\n")
        pipe.flush()

    def _answer(self, name: str, expected: str) -> None:
        pipe = self._processes[name].stdout
        assert pipe is not None
        heard = pipe.readline().strip()
        assert heard == expected, f"{name} did not start: {heard} {pipe.readline() if heard else ''}"

    def _enter_switch(self) -> list[str]:
        return ["nsenter", f"--net=/proc/{self._processes['switch'].pid}/ns/net"]

    def _on_host(self, name: str, *words: str) -> None:
        enter = ["nsenter", f"--net=/proc/{self._processes[name].pid}/ns/net"]
        subprocess.run([*enter, *words], check=True, env=_environment())

    def _on_switch(self, *words: str) -> None:
        subprocess.run([*self._enter_switch(), *words], check=True, env=_environment())


def _kept(folder: Path) -> list[Path]:
    """What every host needs of this machine's disk, should it be below /tmp."""
    return sorted({folder, ROOT, Path(sys.prefix), Path(sys.base_prefix)})


def _environment() -> dict[str, str]:
    return {"PATH": PATH, "SSHD": shutil.which("sshd", path=PATH) or "", "LANG": "C"}
