"""Processes killed with SIGKILL at every crash point."""

import os
import time

import pytest

from orch.store import Store
from orch.store.local_files import ABANDONED_SECONDS
from tests.store.example import everything, ids, parts, saved, write_example
from tests.store.processes import run, run_until_killed

BEFORE_THE_ROW = ["part-written", "part-renamed", "curves-written", "part-written:2"]


def temporary_files(root):
    return [path for path in root.rglob(".*") if path.is_file()]


@pytest.fixture
def store(tmp_path):
    store = Store.open(tmp_path)
    for seed in range(6):
        write_example(store, seed, minute=seed)
    return store


@pytest.mark.thorough
@pytest.mark.parametrize("point", [*BEFORE_THE_ROW, "part-renamed:2"])
def test_a_writer_killed_at_any_point_leaves_a_whole_trial_or_none(store, tmp_path, point):
    run_until_killed(point, "write", tmp_path, 6, 7)
    finished = point not in BEFORE_THE_ROW
    for reader in (store, Store.open(tmp_path)):
        assert reader.done() == ids(range(7 if finished else 6))
        assert reader.read("trials").num_rows == len(reader.done())
    assert len(temporary_files(tmp_path)) == ("written" in point and "curves" not in point)
    run("write", tmp_path, 6, 7)
    reader = Store.open(tmp_path)
    assert reader.done() == ids(range(7))
    assert reader.read("trials").num_rows == 7
    assert reader.read("curves").num_rows == 21


@pytest.mark.parametrize(
    "point", ["part-written", "part-renamed", "compacted-written", "part-deleted", "part-deleted:8"]
)
def test_a_compaction_killed_at_any_point_neither_loses_nor_duplicates_rows(store, tmp_path, point):
    before = everything(Store.open(tmp_path))
    run_until_killed(point, "compact", tmp_path)
    assert everything(Store.open(tmp_path)) == before
    assert everything(store) == before
    write_example(store, seed=6)
    run("compact", tmp_path)
    assert len(parts(tmp_path, "trials")) <= 2
    after = everything(Store.open(tmp_path))
    assert [row for row in after["trials"] if row["init_seed"] != 6] == before["trials"]
    assert len(after["trials"]) == 7
    assert len(after["curves"]) == 21


def test_compaction_removes_checkpoints_that_dead_writers_left_half_written(tmp_path):
    store = Store.open(tmp_path)
    store.put_checkpoint("t", saved(b"whole"))
    dead, living = (tmp_path / "checkpoints" / f".t.safetensors.{name}" for name in ("00000001", "00000002"))
    for path in (dead, living):
        path.write_bytes(b"ha")
    long_ago = time.time() - 2 * ABANDONED_SECONDS
    for path in (dead, tmp_path / "checkpoints" / "t.safetensors"):
        os.utime(path, (long_ago, long_ago))
    store.compact()
    assert not dead.exists()
    assert living.exists()
    assert store.get_checkpoint("t") == saved(b"whole")


def test_a_checkpoint_stays_the_old_one_if_its_writer_dies_while_replacing_it(tmp_path, monkeypatch):
    store = Store.open(tmp_path)
    store.put_checkpoint("t", saved(b"old"))

    class Died(BaseException):
        pass

    def die(name):
        if name == "checkpoint-written":
            raise Died

    monkeypatch.setattr("orch.store.local_files.crash_point", die)
    with pytest.raises(Died):
        store.put_checkpoint("t", saved(b"new, and longer"))
    assert store.get_checkpoint("t") == saved(b"old")
