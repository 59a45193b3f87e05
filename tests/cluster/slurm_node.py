"""A real Slurm on this machine: a controller and one node, with two partitions of which one may preempt the other."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from tests.cluster.hosts import PATH

TOOLS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
"""What it takes, and the Debian package that has it."""

CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
AuthInfo=cred_expire=3
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
KillWait=10
NodeName=node NodeAddr=127.0.0.1 NodeHostname={host} CPUs=2 State=UNKNOWN
PartitionName=low Nodes=node Default=YES PriorityTier=1 GraceTime=120 MaxTime=INFINITE State=UP
PartitionName=high Nodes=node PriorityTier=10 MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Why this machine cannot run Slurm; nothing if it can."""
    lacking = sorted({package for tool, package in TOOLS.items() if shutil.which(tool, path=PATH) is None})
    return f"needs the Debian packages {', '.join(lacking)}" if lacking else None


class SlurmNode:
    """A Slurm that runs until the `with` ends, and what it takes to talk to it: `environment` and `folder`."""

    def __enter__(self) -> "SlurmNode":
        # Not in /tmp, which nodes do not share: orch slurm refuses a store there.
        self.folder = Path(tempfile.mkdtemp(prefix="orch-slurm-", dir="/var/tmp"))
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        with socket.socket() as first, socket.socket() as second:
            for each in (first, second):
                each.bind(("127.0.0.1", 0))
            ports = [each.getsockname()[1] for each in (first, second)]
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        config = self.folder / "slurm.conf"
        config.write_text(CONFIG.format(host=socket.gethostname(), user=user, folder=self.folder, ports=ports))
        self.environment = {"SLURM_CONF": str(config), "PATH": PATH}
        self._daemons = [self._start("slurmctld", "-D", "-c"), self._start("slurmd", "-D", "-N", "node")]
        self.wait(lambda: "idle" in self.run("sinfo", "--noheader", "--format=%T", check=False))
        return self

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{command[0]}.log", "wb") as log:
            environment = os.environ | self.environment
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.run("scancel", "--full", "--signal=KILL", *self.jobs(), check=False)
        self.run("scancel", *self.jobs(), check=False)
        until = time.monotonic() + 30
        while self.jobs() and time.monotonic() < until:
            time.sleep(0.5)
        for daemon in reversed(self._daemons):
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command of Slurm, and return what it prints."""
        environment = os.environ | self.environment
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, f"{command}: {done.stderr}\n{self.logs()}"
        return done.stdout

    def jobs(self) -> list[str]:
        """The jobs that wait or run: each task of an array by itself."""
        return self.run("squeue", "--noheader", "--array", "--format=%i", check=False).split()

    def restarts(self, task: str) -> int:
        """How often a task has returned to the queue."""
        shown = self.run("scontrol", "show", "job", task)
        return int(shown.partition("Restarts=")[2].split()[0])

    def wait(self, condition, seconds: float = 300.0):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if found := condition():
                return found
            time.sleep(0.2)
        raise AssertionError(f"the condition was not met in time\n{self.logs()}")

    def logs(self) -> str:
        """What the daemons and the tasks have said."""
        files = [*self.folder.glob("*.log"), *self.folder.glob("*.out")]
        return "\n".join(f"== {file.name}\n{file.read_text()[-4000:]}" for file in files)
