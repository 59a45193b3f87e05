"""After a compaction, programs that read the Parquet files of `trials` see each finished trial once."""

import datetime
import threading

import duckdb
import pytest

from orch.store import Store, compaction
from tests.store.example import everything, ids, parts, write_example
from tests.store.processes import run, run_until_killed


def raw_rows(root, table="trials"):
    """Return trial and attempt of every row that a plain reader of Parquet finds."""
    sql = f"SELECT trial_id, attempt_id FROM read_parquet('{root}/{table}/*/*.parquet')"
    return sorted(duckdb.sql(sql).fetchall())


def once(root):
    rows = raw_rows(root)
    return len({trial_id for trial_id, _ in rows}) == len(rows)


@pytest.fixture
def store(tmp_path):
    """A store in which two drivers have finished the same trials, in parts of several levels."""
    store = Store.open(tmp_path)
    for attempt, minutes in (("first", 0), ("second", 60)):
        for seed in range(4):
            write_example(store, seed, attempt=attempt, minute=minutes + seed, accuracy=0.25 if minutes else 0.5)
        store.compact("trials", min_parts=4)
    assert [path.parts[-2] for path in parts(tmp_path, "trials")] == ["1", "1"]
    assert len(raw_rows(tmp_path)) == 8
    return store


def test_a_later_result_of_a_trial_leaves_the_table_and_counts_again_if_the_first_is_withdrawn(store, tmp_path):
    before = everything(Store.open(tmp_path))
    store.compact(min_parts=100, rewrite=True)
    assert once(tmp_path)
    assert {attempt for _, attempt in raw_rows(tmp_path)} == {f"first-{seed}" for seed in range(4)}
    assert {attempt for _, attempt in raw_rows(tmp_path, "superseded")} == {f"second-{seed}" for seed in range(4)}
    assert everything(Store.open(tmp_path)) == everything(store) == before
    trial_id = write_example(Store.open(tmp_path / "other"), seed=0)
    now = datetime.datetime.now(datetime.UTC)
    store.write("withdrawn", [{"trial_id": trial_id, "attempt_id": "first-0", "reason": "a test", "at": now}])
    for reader in (store, Store.open(tmp_path)):
        rows = {row["trial_id"]: row for row in reader.read("trials").to_pylist()}
        assert (rows[trial_id]["attempt_id"], rows[trial_id]["ood_accuracy"]) == ("second-0", 0.25)
        points = [row["attempt_id"] for row in reader.read("curves").to_pylist() if row["trial_id"] == trial_id]
        assert set(points) == {"second-0"}


def test_discarding_withdraws_later_results_too(store, tmp_path):
    store.compact(rewrite=True)
    assert Store.open(tmp_path).discard(ids([0]), "wrong") == 1
    assert store.done() == Store.open(tmp_path).done() == ids([1, 2, 3])


def test_withdrawn_rows_stay_in_the_table_and_are_not_written_again(store, tmp_path):
    store.discard(ids([0]), "wrong")
    write_example(store, seed=0, attempt="third", minute=120)
    store.compact(min_parts=2, rewrite=True)
    assert [attempt for trial, attempt in raw_rows(tmp_path) if {trial} == ids([0])] == [
        "first-0",
        "second-0",
        "third-0",
    ]
    names = [path.name for path in parts(tmp_path, "trials")]
    store.compact(min_parts=2, rewrite=True)
    assert [path.name for path in parts(tmp_path, "trials")] == names
    assert store.done() == ids(range(4))


def test_large_parts_are_written_again_only_if_they_have_results_of_the_same_trials(tmp_path, monkeypatch):
    monkeypatch.setattr(compaction, "LARGE_ROWS", 2)
    store = Store.open(tmp_path)
    for start in (0, 2, 4):
        for seed in range(start, start + 2):
            write_example(store, seed)
        store.compact("trials", min_parts=2)
    alone = parts(tmp_path, "trials")[0]
    write_example(store, seed=3, attempt="again", minute=5)
    write_example(store, seed=4, attempt="again", minute=5)
    store.compact("trials", min_parts=2)
    store.compact("trials", rewrite=True)
    assert once(tmp_path)
    assert [path for path in parts(tmp_path, "trials") if path == alone] == [alone]
    assert len(parts(tmp_path, "trials")) == 2
    assert Store.open(tmp_path).done() == ids(range(6))


def test_compactions_at_once_lose_nothing_and_the_next_one_leaves_each_trial_once(store, tmp_path):
    before = everything(Store.open(tmp_path))
    threads = [threading.Thread(target=Store.open(tmp_path).compact, kwargs={"rewrite": True}) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert everything(Store.open(tmp_path)) == before
    store.compact(rewrite=True)
    assert once(tmp_path)
    assert everything(Store.open(tmp_path)) == before


@pytest.mark.thorough
@pytest.mark.parametrize("point", ["superseded-written", "compacted-written", "part-deleted"])
def test_a_compaction_that_is_killed_loses_nothing_and_the_next_one_leaves_each_trial_once(store, tmp_path, point):
    before = everything(Store.open(tmp_path))
    run_until_killed(point, "compact", tmp_path)
    assert everything(Store.open(tmp_path)) == before
    run("compact", tmp_path)
    assert once(tmp_path)
    assert everything(Store.open(tmp_path)) == before
