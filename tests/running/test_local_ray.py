"""Ray on this machine: its end is noticed, and only its end."""

import itertools
import signal
import subprocess
import sys
import threading

import pytest

from orch.core.errors import OrchError
from orch.running import local_ray, ray_guard


@pytest.fixture
def given_up(monkeypatch):
    """Return an event that is set when the driver gives up."""
    happened = threading.Event()
    monkeypatch.setattr(local_ray, "give_up", lambda message: happened.set())
    monkeypatch.setattr(local_ray, "WATCH_SECONDS", 0.02)
    return happened


def test_the_end_of_a_program_of_ray_is_noticed(given_up):
    with subprocess.Popen(["sleep", "60"]) as child, local_ray._watched("sleep"):
        assert not given_up.wait(0.3)
        child.kill()
        assert given_up.wait(10)


def test_a_list_of_children_with_gaps_ends_nothing(given_up, monkeypatch):
    """Linux may leave children out of the list while another one ends."""
    with subprocess.Popen(["sleep", "60"]) as child:
        lists = itertools.cycle([{child.pid}, set()])
        monkeypatch.setattr(ray_guard, "children_running", lambda *_: next(lists))
        with local_ray._watched("sleep"):
            assert not given_up.wait(0.3)
        child.kill()


def test_cores_beyond_all_reason_are_refused_before_ray_starts_a_process_for_each():
    refused = pytest.raises(OrchError, match="100000 is far more than this machine has cores: use at most")
    with refused, local_ray.local_ray(100_000):
        raise AssertionError("started")


def test_the_guard_ends_a_process_that_it_overlooks_while_it_is_being_started(monkeypatch):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"]) as late:
        lists = iter([[], [late.pid]])
        monkeypatch.setattr(ray_guard, "processes_of", lambda *_: next(lists, []))
        ray_guard.end_processes("folder", 0, settle=0.3)
        assert late.wait(timeout=10) == -signal.SIGKILL
