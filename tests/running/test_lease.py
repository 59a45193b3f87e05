"""Leases of drivers, and their claims of trials."""

import os
import subprocess
import sys
import time

import pytest

from orch.running.lease import Lease
from orch.running.session import StoreHeld, check_holders
from orch.store import Store, StoreWarning
from orch.store.drivers import DEAD_AFTER_SECONDS, read_drivers


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")


def file_of(store, **values):
    entry = {
        "driver_id": "other", "host": os.uname().nodename, "pid": os.getppid(), "started_at": "2025-01-01",
        "sweeps": "main", "beat": time.time(), "claims": ["t1"],
    } | values  # fmt: skip
    store.put_json("drivers/other.json", entry)


def test_a_lease_is_seen_while_it_is_held_and_gone_afterwards(store):
    with Lease(store, "main at smoke scale"):
        (seen,) = read_drivers(Store.open(store.uri))
        assert seen.alive
        assert f"process {os.getpid()} on" in seen.description
    assert read_drivers(store) == []


def test_a_driver_whose_process_is_gone_is_dead_at_once(store):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    file_of(store, pid=ended.pid)
    assert not read_drivers(store)[0].alive


@pytest.mark.skipif(not os.path.exists("/proc"), reason="needs /proc, which has the start times of processes")
def test_a_driver_whose_process_id_was_reused_is_dead(store):
    with Lease(store, "main at smoke scale") as lease:
        own = store.get_json(f"drivers/{lease.driver_id}.json")
    file_of(store, pid=os.getpid(), process_start=own["process_start"])
    assert read_drivers(store)[0].alive
    file_of(store, pid=os.getpid(), process_start=str(int(own["process_start"]) - 1))
    assert not read_drivers(store)[0].alive


def test_a_driver_elsewhere_is_dead_without_a_heartbeat(store):
    file_of(store, host="elsewhere", pid=1)
    assert read_drivers(store)[0].alive
    file_of(store, host="elsewhere", pid=1, beat=time.time() - DEAD_AFTER_SECONDS - 1)
    assert not read_drivers(store)[0].alive


def test_what_another_live_driver_has_claimed_is_not_taken(store):
    file_of(store, host="elsewhere", pid=1)
    with Lease(store, "main") as lease:
        assert lease.shared
        assert not lease.claim(["t1"])
        assert lease.claim(["t2"])
        assert any("t2" in driver.claims for driver in read_drivers(store)), "a claim must be published at once"
        file_of(store, host="elsewhere", pid=1, claims=[])
        assert lease.claim(["t1"])


def test_the_next_driver_deletes_what_a_killed_one_left_behind(store):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    file_of(store, pid=ended.pid, beat=time.time() - 16)
    with Lease(store, "main"):
        assert store.get_json("drivers/other.json") is None
    file_of(store, host="elsewhere", beat=time.time() - 16)
    with Lease(store, "main"):
        assert store.get_json("drivers/other.json") is not None, "a machine that cannot be asked may only be slow"


def test_a_half_written_file_is_no_driver(store):
    store.put_bytes("drivers/half.json", b'{"driver_id": "ha')
    store.put_json("drivers/odd.json", {"pid": 3})
    with pytest.warns(StoreWarning, match=r"drivers/half.json .* is damaged"):
        assert read_drivers(store) == []


def test_of_two_drivers_that_start_at_the_same_moment_the_first_goes_on(store):
    with Lease(store, "main") as first, Lease(store, "main") as second:
        check_holders(store, "wait", first)
        with pytest.raises(StoreHeld, match="is being worked on by process"):
            check_holders(store, "wait", second)
