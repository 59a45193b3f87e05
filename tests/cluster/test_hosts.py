"""The hosts that other tests stand on: alone, mortal, and gone without a trace."""

import contextlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.hosts import ROOT, Hosts, missing
from tests.engine.conftest import wait_for

pytestmark = pytest.mark.cluster

MAKE_AND_WAIT = """
import time
from tests.cluster.hosts import Hosts
with Hosts(num_workers=1) as hosts:
    print(hosts.folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _possible() -> None:
    reason = missing()
    if reason:
        pytest.skip(reason)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts(num_workers=2, environment={"COLOUR": "two 'words'"}) as found:
        yield found


def processes_with(text: str) -> list[str]:
    """The command lines of the processes, in any namespace, that mention a text."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_text().replace("\0", " ")
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found


def links() -> str:
    return subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout


def test_every_host_has_its_own_name_network_processes_and_home(hosts):
    for name, address in hosts.addresses.items():
        told = hosts.run(
            name, "hostname; echo $COLOUR; echo ~; touch /tmp/mine; ls /tmp/mine; ps -A -o args; ip -brief address"
        )
        assert told.splitlines()[:4] == [name, "two 'words'", str(hosts.home(name)), "/tmp/mine"]
        assert told.count("sshd: /") == 1
        assert f" {address}/24 " in told
    assert not Path("/tmp/mine").exists()


def test_hosts_share_a_folder_with_each_other_and_with_this_machine(hosts):
    hosts.run(hosts.head, f"echo hello > {hosts.folder}/note")
    assert hosts.run(hosts.workers[1], f"cat {hosts.folder}/note") == "hello\n"
    assert (hosts.folder / "note").read_text() == "hello\n"


def test_hosts_have_no_way_to_the_world(hosts):
    hosts.run(hosts.head, "timeout 5 bash -c '< /dev/tcp/worker1/22'")
    hosts.run(hosts.head, "timeout 5 bash -c '< /dev/tcp/192.0.2.1/22' 2> /dev/null", expect=1)


def test_a_killed_host_is_gone_and_comes_back_with_its_disk_only(hosts):
    worker = hosts.workers[0]
    hosts.run(worker, "touch ~/kept /tmp/lost")
    hosts.login(worker, "sleep 4242")
    wait_for(lambda: processes_with("sleep 4242"), seconds=10)
    hosts.kill(worker)
    assert not [line for line in processes_with("sleep 4242") if line.startswith("sleep")]
    hosts.run(hosts.head, f"! timeout 5 bash -c '< /dev/tcp/{worker}/22' 2> /dev/null")
    hosts.start(worker)
    assert hosts.run(worker, "ls ~/kept; ls /tmp/lost 2> /dev/null || true").strip() == f"{hosts.home(worker)}/kept"


def test_hosts_leave_nothing_behind_when_a_test_fails():
    before = links()
    with contextlib.suppress(ZeroDivisionError), Hosts(num_workers=1) as hosts:
        hosts.login(hosts.head, "sleep 600")
        raise ZeroDivisionError
    name = hosts.folder.parent.name
    assert not processes_with(name)
    assert name not in Path("/proc/mounts").read_text()
    assert links() == before
    assert not hosts.folder.parent.exists()


def test_hosts_end_with_the_process_that_made_them():
    maker = subprocess.Popen([sys.executable, "-c", MAKE_AND_WAIT], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    folder = Path(maker.stdout.readline().strip()).parent
    try:
        assert processes_with(folder.name)
        maker.send_signal(signal.SIGKILL)
        maker.communicate()
        wait_for(lambda: not processes_with(folder.name), seconds=10)
    finally:
        shutil.rmtree(folder)
