"""The overview of a store: what it shows, and that it is read incrementally."""

import pytest

from orch.analysis.claims import Verdict
from orch.core.errors import InvalidSettings
from orch.running.lease import Lease
from orch.running.requests import Request, record
from orch.serving.charts import Scale
from orch.serving.money import HourlyPrice, read_price
from orch.serving.overview import OverviewReader
from orch.serving.tiles import recorded_grid
from orch.store import Store
from tests.command_line import orch
from tests.engine.bucket import s3_bucket
from tests.serving.small_store import (
    CELLS,
    HOSTILE,
    TRIALS,
    fail,
    finish_trials,
    lose,
    record_sweep,
    start_attempt,
    train,
)


@pytest.fixture(autouse=True)
def _sweep(store):
    record_sweep(store)


def eager(store, **more):
    """Return a reader that reads again whenever it is asked."""
    reader = OverviewReader(store, **more)
    reader.seconds = 0.0
    reader.share = float("inf")
    return reader


def test_nothing_is_computed_again_while_nothing_changes(store):
    finish_trials(store, TRIALS[:2])
    reader = eager(store)
    first = reader.read()
    assert reader.read() is first
    finish_trials(store, TRIALS[2:3])
    second = reader.read()
    assert second.version != first.version
    assert (first.num_done, second.num_done) == (2, 3)


def test_tiles_fill_and_a_claim_turns_as_results_arrive(store):
    reader = eager(store)
    (grid,) = reader.read().grids
    assert {tile.accuracy for tile in grid.tiles.values()} == {None}
    parity = [trial for trial in TRIALS if trial.task.modulus == 2]
    finish_trials(store, [trial for trial in parity if trial.model.summary == "block size 1"])
    (grid,) = reader.read().grids
    filled = {(row, column.heading): tile for (row, column), tile in grid.tiles.items() if tile.accuracy is not None}
    assert [(row, tile.accuracy, tile.summary.num_done) for (row, _), tile in filled.items()] == [
        ("Block 1 (real diagonal)", 1.0, 2)
    ]
    turned = reader.read().turned
    assert turned["demo", "diagonal-learns-parity"].before is Verdict.NOT_ENOUGH


def test_a_running_trial_is_seen_with_its_curve_from_a_bucket_and_leaves_nothing_behind(monkeypatch, tmp_path):
    with s3_bucket(monkeypatch, tmp_path) as location:
        store = Store.open(location)
        record_sweep(store)
        reader = eager(Store.open(location), price=HourlyPrice(2.0))
        with Lease(store, "demo") as lease:
            start_attempt(store, lease, TRIALS[0])
            train(store, lease, TRIALS[0], num_points=3)
            shown = reader.read()
            (running,) = shown.running
            assert running.progress.label == TRIALS[0].label_in_cell
            assert [step for step, _, _ in running.progress.curve] == [100, 200, 300]
            assert shown.money.text == "$1.00"
            assert shown.grids[0].num_running == 1
            train(store, lease, TRIALS[0], num_points=5)
            assert len(reader.read().running[0].progress.curve) == 5
        assert reader.read().running == []
        assert store.list_files("drivers") == []


def test_the_cells_of_ones_own_sweep_are_tiles_before_anything_is_finished():
    settings = {"width": 8, "steps": 100}
    cells = [
        {"model": "mine", "variant": "", "task": "parity", "problem": "", "settings": settings, "trials": ["a", "b"]},
        {"model": "mine", "variant": "", "task": "parity", "problem": "", "settings": settings | {"width": 16},
         "trials": ["c"]},
    ]  # fmt: skip
    grid = recorded_grid("study", "laptop", "A study", cells, {}, {"c"}).with_running({"a"})
    assert grid.rows == ("mine (width 8)", "mine (width 16)")
    first, second = grid.tiles.values()
    assert (first.summary.num_planned, first.num_running, second.summary.num_failed) == (2, 1, 1)


def test_a_recorded_sweep_of_a_users_file_lists_its_cells(store, tmp_path):
    path = tmp_path / "my_study.py"
    path.write_text(
        "import orch\n\n@orch.task(inputs=2, states=2)\ndef flips(state, symbol):\n    return (state + symbol) % 2\n\n"
        "cells = orch.grid(models=['lstm', 'rnn'], tasks=[flips], learning_rates=(1e-2,), seeds=2, steps=10)\n"
    )
    request = Request.read([str(path)], None, [])
    record(store, request, request.plan(store))
    grid = next(each for each in eager(store).read().grids if each.sweep == "my-study")
    assert (grid.rows, [column.task for column in grid.columns]) == (("lstm", "rnn"), ["flips"])
    assert grid.num_planned == 4
    assert all(tile.trial_to_show for tile in grid.tiles.values())


def test_watch_prints_the_overview_and_no_control_characters(store):
    finish_trials(store, TRIALS[:2])
    fail(store, TRIALS[5])
    with Lease(store, HOSTILE) as lease:
        start_attempt(store, lease, TRIALS[3])
        train(store, lease, TRIALS[3], num_points=4)
        shown = orch("watch", "--once", "--store", store.uri, "--price", "4").output
    assert "2 of 20" in shown
    assert "1 running" in shown
    assert TRIALS[3].label in shown
    assert "about $2.00 left to pay" in shown
    assert "ValueError" in shown
    assert not [character for character in shown if not character.isprintable() and character != "\n"]


def test_trials_are_counted_once_and_lost_ones_have_not_failed(store):
    record_sweep(store, where="model!=rnn", waiting=7)  # the same trials, asked for again
    finish_trials(store, TRIALS[:2])
    fail(store, TRIALS[5])
    for trial in TRIALS[6:8]:
        lose(store, trial)
    with Lease(store, "demo") as lease:
        lease.claim([trial.id for trial in TRIALS[8:11]])  # claimed, and only one of them has begun
        lease._write()
        start_attempt(store, lease, TRIALS[8])
        shown = eager(store).read()
        text = orch("watch", "--once", "--store", store.uri).output
    counts = (shown.num_done, shown.num_running, shown.num_left, shown.num_lost, shown.num_failed)
    assert counts == (2, 3, 12, 2, 1)
    assert sum(counts) == len(TRIALS)
    assert "2 results · 3 running · 12 to do · 2 lost, will be resumed · 1 failed" in text
    assert "3 running, 1 failed, 2 lost, will be resumed, 12 to do" in text
    assert "° unfinished" in text
    assert sum(tile.summary.num_failed for tile in shown.grids[0].tiles.values()) == 1


def test_a_price_is_dollars_or_a_launcher_file():
    assert read_price("1.5").left(3, 7200.0).text == "$3.00"
    cluster = read_price("cluster/a100.yaml").left(2, 3600.0)
    assert 0 < cluster.low <= cluster.high
    assert read_price("1.5").left(3, None) is None, "no time left is known, so no money either"
    for text in ("-1", "nan", "nowhere.yaml"):
        with pytest.raises(InvalidSettings, match="--price"):
            read_price(text)


def test_every_cell_of_the_demo_is_a_tile(store):
    (grid,) = eager(store).read().grids
    assert len(grid.tiles) == len(CELLS)
    assert grid.num_planned == len(TRIALS)


def test_a_logarithmic_axis_within_one_power_of_ten_has_its_ends_as_ticks():
    assert Scale(0.3108, 1.614, 0, 100, logarithmic=True).ticks == [0.31, 1.6]
    assert Scale(0.02, 3, 0, 100, logarithmic=True).ticks == [0.1, 1.0]


def test_the_pace_of_trials_is_shown_only_while_a_driver_runs(store):
    finish_trials(store, TRIALS[:3])
    assert eager(store).read().status.per_hour is not None
    assert "trials an hour" not in orch("watch", "--once", "--store", store.uri).output
    with Lease(store, "demo"):
        assert "trials an hour" in orch("watch", "--once", "--store", store.uri).output
