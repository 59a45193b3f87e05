"""A Ray cluster on hosts made of network namespaces, with a store in a folder that they share."""

import contextlib
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.chaos.harness import Round
from tests.chaos.places import Place
from tests.chaos.planned import FILE
from tests.chaos.processes import HUNG_SECONDS, ROOT, Hung
from tests.cluster.hosts import Hosts

ENVIRONMENT = {
    "ORCH_TRAINING": "tests.engine.faults:open_training",
    "ORCH_FAULTS": json.dumps([["slow 0.5", {}]]),
    "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    "RAY_OVERRIDE_RESOURCES": json.dumps({"CPU": 1}),
    "RAY_USAGE_STATS_ENABLED": "0",
    # A machine that has gone silent is given up after seconds; it would be a minute.
    "RAY_health_check_failure_threshold": "3",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "3000",
}
START = f"{sys.executable} -m ray.scripts.scripts start"


class Cluster(Place):
    """A head and two workers. Every host has one CPU and trains slowly."""

    name = "hosts"

    def __init__(self, folder: Path, hosts: Hosts):
        super().__init__(folder)
        self.hosts = hosts
        self.root = self.location = self.direct = str(hosts.folder / "runs")
        self.head = f"{hosts.addresses[hosts.head]}:6379"
        hosts.run(hosts.head, f"{START} --head --port=6379 --include-dashboard=false 2>&1", seconds=HUNG_SECONDS)
        for name in hosts.workers:
            self.join(name)

    def join(self, name: str) -> None:
        """Start Ray on a worker."""
        # A machine has 30 seconds to join, which Ray lets nobody change and is too little where many others work.
        start, stop = f"{START} --address={self.head}", f"{sys.executable} -m ray.scripts.scripts stop --force"
        self.hosts.run(name, f"({start} || ({stop}; {start})) 2>&1", seconds=HUNG_SECONDS)

    def start(self, round: Round, *options: str) -> subprocess.Popen[str]:
        """Start a sweep on the head."""
        words = ["sweep", FILE, "--store", self.location, "--checkpoint-seconds", "0.1", *options]
        round.note(f"orch {shlex.join(words)} on the head")
        command = f"RAY_ADDRESS={self.head} {sys.executable} -m orch {shlex.join(words)} 2>&1"
        return self.hosts.login(self.hosts.head, command)

    def wait(self, round: Round, driver: subprocess.Popen[str]) -> int:
        """Wait for the end of a sweep, and keep its output."""
        try:
            output, _ = driver.communicate(timeout=HUNG_SECONDS)
        except subprocess.TimeoutExpired:
            raise Hung("a sweep on hosts does not end") from None
        (round.folder / f"driver-{driver.pid}.out").write_text(output)
        round.note(f"the sweep ended with {driver.returncode}")
        return driver.returncode


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Bring up a cluster; at the end its store is where that of a round on a disk would be."""
    with Hosts(num_workers=2, environment=ENVIRONMENT) as hosts:
        place = Cluster(folder, hosts)
        try:
            yield place
        finally:
            if folder.exists() and Path(place.root).exists():
                shutil.copytree(place.root, folder / "runs")


def disturb(round: Round, inject: Callable[[Cluster, str], None]) -> None:
    """Run a sweep, and do something to one of its workers once trials have been started. The other does the rest."""
    place = round.place
    assert isinstance(place, Cluster)
    driver = place.start(round)
    round.wait_for(lambda: driver.poll() is not None or any(path.startswith("attempts/") for path in place.files()))
    round.pause(5.0)
    inject(place, round.random.choice(place.hosts.workers))
    code = place.wait(round, driver)
    assert code == 0, f"the sweep on hosts, of which one was disturbed, ended with {code}"
