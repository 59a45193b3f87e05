"""Leases of drivers, and their claims of trials."""

import itertools
import math
import os
import re
import subprocess
import sys
import threading
import time

import pytest

from orch.running import lease as lease_module
from orch.running.lease import LAST_NUMBER, Lease, StoreHeld
from orch.store import Store, StoreWarning
from orch.store.attempts import NUMBERED, make_attempt_id
from orch.store.drivers import DEAD_AFTER_SECONDS, MOST_DRIVERS, SILENT_SECONDS, DriverWatch, Life, read_drivers


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self):
        return self.now


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


@pytest.mark.skipif(not os.path.exists("/proc"), reason="needs /proc, which has the start times of processes")
def test_a_driver_whose_process_id_went_to_another_user_is_dead(store, monkeypatch):
    def refuse(pid, number):
        raise PermissionError

    file_of(store, process_start="1")
    monkeypatch.setattr(os, "kill", refuse)
    assert not read_drivers(store)[0].alive


def test_a_driver_here_without_a_start_time_does_not_live_for_as_long_as_any_process_has_its_id(store, monkeypatch):
    """After a restart the id may be that of a service, which never ends."""
    file_of(store, pid=os.getppid(), beat=time.time() - 2 * DEAD_AFTER_SECONDS)
    assert not read_drivers(store)[0].alive
    monkeypatch.setattr(lease_module, "LOOK_SECONDS", 0.0)
    seconds = itertools.count(step=2)
    with Lease(store, "main", clock=lambda: float(next(seconds))) as lease:
        lease.check_alone("wait")


@pytest.mark.parametrize("name", ["beat", "number", "began"])
def test_a_number_that_no_float_can_hold_is_no_driver(store, name):
    file_of(store, **{name: 10**400})
    with pytest.warns(StoreWarning, match=rf"drivers/other.json .*{name} is 1000"):
        assert read_drivers(store) == []


BEATS = [pytest.param(time.time(), id="now"), pytest.param(time.time() + 1e9, id="future"), 0.0, math.nan, math.inf]
"""What the clocks of other machines may say."""


@pytest.mark.parametrize("beat", BEATS)
def test_a_driver_elsewhere_lives_while_its_file_changes_whatever_its_clock_says(store, beat):
    clock = Clock()
    watch = DriverWatch(store, clock)

    def life():
        ((_, found),) = watch.look()
        return found

    file_of(store, host="elsewhere", beat=beat, beats=1)
    assert life() is Life.UNKNOWN
    clock.now += SILENT_SECONDS + 1
    assert life() is Life.DEAD
    file_of(store, host="elsewhere", beat=beat, beats=2)
    assert life() is Life.ALIVE
    clock.now += DEAD_AFTER_SECONDS - 1
    assert life() is Life.ALIVE
    clock.now += 2
    assert life() is Life.DEAD


@pytest.mark.parametrize("beat", BEATS)
def test_a_file_that_a_dead_driver_elsewhere_left_refuses_nobody_for_long(store, beat, monkeypatch):
    monkeypatch.setattr(lease_module, "LOOK_SECONDS", 0.0)
    seconds = itertools.count(step=2)
    file_of(store, host="elsewhere", beat=beat, number=beat)
    with Lease(store, "main", clock=lambda: float(next(seconds))) as lease:
        lease.check_alone("wait")
    assert next(seconds) < 10 * SILENT_SECONDS


@pytest.mark.parametrize("beat", BEATS)
def test_a_live_driver_elsewhere_refuses_others_whatever_its_clock_says(store, beat, monkeypatch):
    monkeypatch.setattr(lease_module, "LOOK_SECONDS", 0.01)
    file_of(store, host="elsewhere", beat=beat, beats=1)
    threading.Timer(0.1, file_of, [store], {"host": "elsewhere", "beat": beat, "beats": 2}).start()
    with pytest.raises(StoreHeld, match=r"process .* on elsewhere"):
        Lease(store, "main").check_alone("wait")


@pytest.mark.parametrize("beat", BEATS[1:])
def test_a_command_that_only_shows_drivers_believes_no_clock_that_is_far_off(store, beat):
    file_of(store, host="elsewhere", beat=beat)
    assert not read_drivers(store)[0].alive


def test_what_another_live_driver_has_claimed_is_not_taken(store, monkeypatch):
    monkeypatch.setattr(lease_module, "FRESH_SECONDS", 0.0)
    file_of(store, host="elsewhere", pid=1)
    with Lease(store, "main") as lease:
        assert lease.shared
        assert not lease.claim(["t1"])
        assert lease.claim(["t2"])
        assert any("t2" in driver.claims for driver in read_drivers(store)), "a claim must be published at once"
        file_of(store, host="elsewhere", pid=1, claims=[])
        assert lease.claim(["t1"])


def test_a_driver_that_expects_others_publishes_its_claims_before_it_has_seen_one(store):
    with Lease(store, "main", expects_others=True) as lease:
        assert lease.claim(["t1"])
        assert [driver.claims for driver in read_drivers(store)] == [{"t1"}]


@pytest.mark.parametrize(("age", "kept"), [(1, False), (-1, True)], ids=["an older one", "a younger one"])
def test_of_two_drivers_that_claim_a_trial_at_the_same_moment_the_older_keeps_it(age, kept, store, monkeypatch):
    with Lease(store, "main", expects_others=True) as lease:
        write = lease._write

        def write_after_another_has_claimed():
            file_of(store, host="elsewhere", pid=1, number=lease.number - age)
            write()

        monkeypatch.setattr(lease, "_write", write_after_another_has_claimed)
        assert lease.claim(["t1"]) == kept
        monkeypatch.undo()
        monkeypatch.setattr(lease_module, "FRESH_SECONDS", 0.0)
        file_of(store, host="elsewhere", pid=1, claims=[])
        assert lease.claim(["t1"])


def test_a_unit_that_another_driver_trains_is_not_asked_for_over_and_over(store, monkeypatch):
    file_of(store, host="elsewhere", pid=1)
    with Lease(store, "main") as lease:
        monkeypatch.setattr(lease, "_read_others", lambda: pytest.fail("the files were read again"))
        monkeypatch.setattr(lease_module, "FRESH_SECONDS", 3600.0)
        assert not lease.claim(["t1"])


def test_a_driver_deletes_what_a_killed_one_left_behind(store):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    clock = Clock()
    with Lease(store, "main", clock) as lease:
        file_of(store, pid=ended.pid)
        lease.claim([])  # reads nothing, because nobody shares the store
        lease._read_others()
        assert store.get_json("drivers/other.json") is not None, "it may only look dead from inside a container"
        clock.now += SILENT_SECONDS + 1
        lease._read_others()
        assert store.get_json("drivers/other.json") is None
        file_of(store, host="elsewhere")
        lease._read_others()
        clock.now += SILENT_SECONDS + 1
        lease._read_others()
        assert store.get_json("drivers/other.json") is not None, "a machine that cannot be asked may only be slow"
        clock.now += DEAD_AFTER_SECONDS
        lease._read_others()
        assert store.get_json("drivers/other.json") is None


def test_a_half_written_file_is_no_driver(store):
    store.put_bytes("drivers/half.json", b'{"driver_id": "ha')
    store.put_json("drivers/odd.json", {"pid": 3})
    with pytest.warns(StoreWarning) as told:
        assert read_drivers(store) == []
    texts = sorted(str(each.message) for each in told)
    assert ["drivers/half.json" in texts[0], "is damaged" in texts[0]] == [True, True]
    assert "drivers/odd.json" in texts[1]


def test_of_two_drivers_that_start_at_the_same_moment_one_goes_on(store):
    with Lease(store, "main") as first, Lease(store, "main") as second:
        first.check_alone("wait")
        with pytest.raises(StoreHeld, match="is being worked on by process"):
            second.check_alone("wait")


def test_of_many_drivers_that_start_at_once_exactly_one_goes_on_though_their_clocks_disagree(store, monkeypatch):
    """Each takes its lease while the others do, and one has a clock that is an hour slow, as another's is fast."""
    monkeypatch.setattr(lease_module, "LOOK_SECONDS", 0.01)
    offsets = itertools.cycle([-3600.0, 0.0, 3600.0, math.nan])
    clock = time.time
    monkeypatch.setattr(lease_module.time, "time", lambda: clock() + next(offsets))
    barrier, lock, alone, refused = threading.Barrier(6, timeout=60), threading.Lock(), [], []

    def start():
        lease = Lease(store, "main")
        barrier.wait()
        with lease:
            try:
                lease.check_alone("wait")
                outcome = alone
            except StoreHeld:
                outcome = refused
            with lock:
                outcome.append(lease.driver_id)
            barrier.wait()

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(alone), len(refused)) == (1, 5)


@pytest.mark.filterwarnings("ignore::orch.store.StoreWarning")
def test_the_numbers_of_drivers_rise_from_run_to_run_and_survive_odd_files(store):
    numbers = []
    for odd in (None, math.nan, math.inf, "many"):
        file_of(store, host="elsewhere", number=odd)
        with Lease(store, "main") as lease:
            numbers.append(lease.number)
    store.put_json(LAST_NUMBER, "odd")
    with Lease(store, "main") as lease:
        assert lease.number == 1
    assert numbers == sorted(set(numbers))
    file_of(store, host="elsewhere", number=MOST_DRIVERS - 1)
    with Lease(store, "main") as lease:
        attempt = make_attempt_id(lease.number, 1)
    assert re.match(NUMBERED, attempt), "readers would order its results by a clock"


def test_a_driver_starts_although_its_file_is_deleted_while_it_chooses_its_number(store):
    lease = Lease(store, "main")
    look = lease._drivers.look

    def deleted():
        lease._drivers.look = look
        store.delete(f"drivers/{lease.driver_id}.json")
        return look()

    lease._drivers.look = deleted
    with lease:
        assert lease.number == 1
        assert [driver.driver_id for driver in read_drivers(store)] == [lease.driver_id]
