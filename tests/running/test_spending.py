"""What runs cost: dollars counted over time, shared by drivers, kept in the store, and None where no price is known."""

import pytest
from click.testing import CliRunner

from orch.cli import main
from orch.running import spending
from orch.running.lease import Lease
from orch.running.options import RunOptions
from orch.running.spending import Spending, Spent, read_spending
from orch.store import Store
from orch.store.drivers import live_drivers


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")


@pytest.fixture
def clock(monkeypatch):
    """The time in hours, which tests set."""
    now = [0.0]
    monkeypatch.setattr(spending.time, "monotonic", lambda: 3600 * now[0])
    return now


def spend(store, price, lease, limit=None):
    return Spending(store, lease, RunOptions(dollars_per_hour=price, max_dollars=limit), "here")


def test_dollars_are_the_price_of_the_machines_alive_times_the_time(store, clock):
    alive = [2]
    with Lease(store, "main") as lease:
        found = spend(store, lambda: 3.0 * alive[0], lease)
        clock[0] = 1.0
        found.count()
        assert found.dollars == pytest.approx(6.0)
        alive[0], clock[0] = 1, 1.5
        found.count()
        assert found.dollars == pytest.approx(7.5)
        assert not found.is_used_up


def test_the_limit_is_reached_by_what_was_spent(store, clock):
    with Lease(store, "main") as lease:
        found = spend(store, lambda: 10.0, lease, limit=5.0)
        clock[0] = 0.4
        found.count()
        assert not found.is_used_up
        clock[0] = 0.6
        found.count()
        assert found.is_used_up
        assert found.reason == "--max-dollars is reached, about $6.00 were spent"


def test_a_price_that_cannot_be_asked_for_a_while_is_the_last_one_known(store, clock):
    answers = iter([4.0, None])

    def price():
        for answer in answers:
            return answer
        raise ConnectionError

    with Lease(store, "main") as lease:
        found = spend(store, price, lease)
        for hour in (1.0, 2.0, 3.0):
            clock[0] = hour
            found.count()
        assert found.dollars == pytest.approx(12.0)


def test_without_a_price_nothing_is_counted_or_recorded(store, clock):
    with Lease(store, "main") as lease:
        found = spend(store, None, lease)
        clock[0] = 1.0
        found.count()
        found.close()
    assert found.dollars is None
    assert read_spending(store, [], 0.0) == Spent()


def test_records_outlive_their_drivers_and_are_projected_while_one_is_alive(store, clock):
    with Lease(store, "main") as lease:
        first = spend(store, lambda: 10.0, lease)
        clock[0] = 2.0
        first.close()
    assert read_spending(store, live_drivers(store), None) == Spent(dollars=20.0, runs=1)
    with Lease(store, "main") as lease:
        second = spend(store, lambda: 4.0, lease)
        clock[0] = 3.0
        second.count()
        found = read_spending(store, live_drivers(store), 1800.0)
        assert found == Spent(dollars=24.0, runs=2, per_hour=4.0, projected=26.0)
        assert read_spending(store, live_drivers(store), None).projected is None


def test_drivers_on_the_same_machines_share_their_cost(store, clock):
    with Lease(store, "main") as first, Lease(store, "main") as second:
        first.counts = {"machines": "here"}
        first._write()
        second._read_others()
        found = spend(store, lambda: 10.0, second)
        clock[0] = 1.0
        found.count()
        assert found.dollars == pytest.approx(5.0)
        first.counts = {"machines": "elsewhere"}
        first._write()
        clock[0] = 2.0
        found.count()
        assert found.dollars == pytest.approx(15.0)


def test_a_limit_without_a_price_is_refused_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    words = ["sweep", "main", "--scale", "smoke", "--max-dollars", "5", "--store", str(tmp_path / "runs")]
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 2
    assert "--max-dollars needs the price of the machines, which is not known here: add --dollars-per-hour" in (
        refused.stderr
    )
    assert not (tmp_path / "runs").exists()
    assert (
        "--dollars-per-hour 0.0 is not enough" in CliRunner().invoke(main, [*words, "--dollars-per-hour", "0"]).stderr
    )
