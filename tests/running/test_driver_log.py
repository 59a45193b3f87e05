"""The logs that drivers leave in a store."""

import doctest
import json
import threading

import pytest
from click.testing import CliRunner

from orch.cli import main
from orch.core.errors import OrchError
from orch.running import driver_log
from orch.running.driver_log import StoreLog, follow_log, newest_driver, open_driver_log, read_log
from orch.running.lease import Lease
from orch.store import Store


@pytest.fixture
def store(tmp_path) -> Store:
    return Store.open(tmp_path / "runs")


def leave_log(store: Store, driver_id: str, *events: str) -> None:
    log = open_driver_log(store, driver_id)
    for event in events:
        log.event(event)
    log.flush(now=True)


def events(lines: list[str]) -> list[str]:
    return [json.loads(line)["event"] for line in lines]


def test_a_store_without_logs_says_so(store):
    with pytest.raises(OrchError, match="no sweep has left a log"):
        newest_driver(store)


def test_the_log_of_the_last_driver_is_shown(store):
    leave_log(store, "zzz", "first")
    leave_log(store, "aaa", "second", "third")
    StoreLog(store, "worker-host-1").event("not a driver's")
    assert newest_driver(store) == "aaa"
    assert events(read_log(store, "aaa")) == ["second", "third"]


def test_a_driver_at_work_goes_before_one_that_wrote_later(store):
    with Lease(store, "main") as lease:
        leave_log(store, "other", "later")
        assert newest_driver(store) == lease.driver_id


def test_a_log_is_followed_until_its_driver_leaves_with_every_line_once(store, monkeypatch):
    monkeypatch.setattr(driver_log, "FLUSH_SECONDS", 0.02)
    monkeypatch.setattr(driver_log, "MAX_LINES", 5)
    seen: list[str] = []
    with Lease(store, "main") as lease:
        log = open_driver_log(store, lease.driver_id)
        heard = threading.Semaphore(0)

        def follow() -> None:
            for line in follow_log(store, lease.driver_id):
                seen.append(line)
                heard.release()

        thread = threading.Thread(target=follow)
        thread.start()
        for number in range(12):  # more than the log keeps
            log.event(f"event {number}")
            log.flush(now=True)
            assert heard.acquire(timeout=30)
        log.event("the end")
        log.flush(now=True)
    thread.join(timeout=30)
    assert not thread.is_alive()
    assert events(seen) == [*(f"event {number}" for number in range(12)), "the end"]


def test_logs_are_printed_for_people_or_as_they_are_kept(store):
    leave_log(store, "abc", "sweep started")
    words = ["logs", "--store", store.uri]
    people, kept = CliRunner().invoke(main, words), CliRunner().invoke(main, [*words, "--json"])
    assert people.output.endswith("  sweep started\n")
    assert kept.output.splitlines() == read_log(store, "abc")


def test_lines_for_people():
    assert doctest.testmod(driver_log).failed == 0
