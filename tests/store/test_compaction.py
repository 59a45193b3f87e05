import json
import os
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest

from orch.store import SCHEMAS, CompactionReport, Store, StoreWarning, compaction
from orch.store.local_files import ABANDONED_SECONDS, LocalFiles
from tests.store.damage import flip_a_byte_of_the_data
from tests.store.example import START, everything, ids, parts, saved, write_example


def fill(store, seeds):
    for seed in seeds:
        write_example(store, seed, minute=seed)
        attempt = {"attempt_id": str(seed), "trial_id": "t", "event": "start", "at": START}
        store.write("attempts", [attempt])


def test_compaction_merges_parts_and_keeps_every_row(tmp_path):
    store = Store.open(tmp_path)
    fill(store, range(20))
    before = everything(Store.open(tmp_path))
    assert store.compact() == CompactionReport(merged=60, written=3)
    assert [len(parts(tmp_path, table)) for table in SCHEMAS] == [1, 1, 1, 0]
    assert everything(Store.open(tmp_path)) == before
    assert everything(store) == before


def test_a_few_parts_are_not_merged(tmp_path):
    store = Store.open(tmp_path)
    fill(store, range(5))
    assert store.compact() == CompactionReport()
    assert store.compact("trials", min_parts=5) == CompactionReport(merged=5, written=1)
    assert len(parts(tmp_path, "curves")) == 5


def test_a_compaction_lists_each_table_once(tmp_path, monkeypatch):
    store = Store.open(tmp_path)
    fill(store, range(4))
    listed = []
    sizes = LocalFiles.sizes
    monkeypatch.setattr(LocalFiles, "sizes", lambda self, folder: listed.append(folder) or sizes(self, folder))
    store.compact(min_parts=2)
    assert listed.count("curves") == listed.count("attempts") == 1


def test_a_merged_part_can_be_read_with_nothing_but_pyarrow(tmp_path):
    store = Store.open(tmp_path)
    fill(store, range(4))
    replaced = [path.relative_to(tmp_path).as_posix() for path in parts(tmp_path, "trials")]
    store.compact(min_parts=2)
    [path] = parts(tmp_path, "trials")
    assert set(pq.read_table(path)["trial_id"].to_pylist()) == ids(range(4))
    assert sorted(json.loads(pq.read_metadata(path).metadata[b"orch.replaces"])) == replaced


def test_merged_parts_are_merged_again_so_their_number_stays_small(tmp_path):
    store = Store.open(tmp_path)
    for seed in range(33):
        write_example(store, seed)
        store.compact(min_parts=2)
    assert len(parts(tmp_path, "trials")) <= 6
    assert Store.open(tmp_path).done() == store.done() == ids(range(33))


def test_large_parts_are_not_merged_again(tmp_path, monkeypatch):
    monkeypatch.setattr(compaction, "LARGE_ROWS", 4)
    store = Store.open(tmp_path)
    for seed in range(10):
        write_example(store, seed)
    assert store.compact("trials", min_parts=2) == CompactionReport(merged=10, written=3)
    sizes = [pq.read_metadata(path).num_rows for path in parts(tmp_path, "trials")]
    assert sorted(sizes) == [2, 4, 4]
    assert Store.open(tmp_path).done() == ids(range(10))
    decode = Mock(side_effect=AssertionError("read a large part"))
    monkeypatch.setattr("orch.store.table_reader.decode", decode)
    assert store.compact("trials", min_parts=2) == CompactionReport()


def test_readers_ignore_the_leftovers_of_a_killed_compaction_and_the_next_deletes_them(tmp_path):
    store = Store.open(tmp_path)
    fill(store, range(4))
    old = {path: path.read_bytes() for path in parts(tmp_path, "trials")}
    store.compact("trials", min_parts=2)
    for path, data in old.items():
        path.write_bytes(data)
    # A reader that read them would warn that this one is damaged, and warnings are errors in tests.
    next(iter(old)).write_bytes(b"garbage")
    assert Store.open(tmp_path).done() == ids(range(4))
    assert store.compact("trials") == CompactionReport(leftovers=4)
    assert len(parts(tmp_path, "trials")) == 1


def test_nothing_is_deleted_for_a_merged_part_that_is_damaged(tmp_path):
    store = Store.open(tmp_path)
    fill(store, range(4))
    old = {path: path.read_bytes() for path in parts(tmp_path, "trials")}
    store.compact("trials", min_parts=2)
    [merged] = parts(tmp_path, "trials")
    merged.write_bytes(flip_a_byte_of_the_data(merged.read_bytes()))
    for path, content in old.items():
        path.write_bytes(content)
    with pytest.warns(StoreWarning, match=merged.name):
        Store.open(tmp_path).compact("trials")
    assert Store.open(tmp_path).done() == ids(range(4))


def test_two_compactions_of_the_same_parts_are_harmless(tmp_path):
    store = Store.open(tmp_path)
    fill(store, range(6))
    before = everything(Store.open(tmp_path))
    copies = {path: path.read_bytes() for path in parts(tmp_path, "trials")}
    store.compact(min_parts=2)
    [merged] = parts(tmp_path, "trials")
    aside = merged.rename(tmp_path / "merged")
    for path, data in copies.items():
        path.write_bytes(data)
    Store.open(tmp_path).compact("trials", min_parts=2)
    aside.rename(merged)
    assert len(parts(tmp_path, "trials")) == 2
    assert everything(Store.open(tmp_path)) == before
    Store.open(tmp_path).compact(min_parts=2)
    assert len(parts(tmp_path, "trials")) == 1
    assert everything(Store.open(tmp_path)) == before


def test_a_merged_part_whose_inputs_were_all_read_is_not_read(tmp_path, monkeypatch):
    store = Store.open(tmp_path)
    for seed in range(3):
        write_example(store, seed)
    before = store.read("trials")
    Store.open(tmp_path).compact(min_parts=2)

    monkeypatch.setattr("orch.store.table_reader.decode", Mock(side_effect=AssertionError("read again")))
    assert store.read("trials") is before


def test_temporary_files_of_killed_writers_are_removed_once_they_are_old(tmp_path):
    store = Store.open(tmp_path)
    write_example(store)
    old, new = (tmp_path / "trials" / "0" / name for name in (".old.parquet.0123abcd", ".new.parquet.0123abcd"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, old.stat().st_mtime - ABANDONED_SECONDS - 1))
    store.compact()
    assert new.exists()
    assert not old.exists()


@pytest.mark.parametrize("min_parts", [0, 1])
def test_a_single_part_is_never_rewritten(tmp_path, min_parts):
    store = Store.open(tmp_path)
    write_example(store)
    assert store.compact(min_parts=min_parts) == CompactionReport()


def test_compaction_deletes_the_checkpoints_of_finished_trials_only(tmp_path):
    store = Store.open(tmp_path)
    finished, withdrawn, unfinished = write_example(store, seed=1), write_example(store, seed=2), ids([3]).pop()
    store.discard([withdrawn], "wrong")
    for trial_id in (finished, withdrawn, unfinished):
        store.put_checkpoint(trial_id, saved(b"weights"))
    store.compact()
    assert store.get_checkpoint(finished) is None
    assert store.get_checkpoint(withdrawn) is not None
    assert store.get_checkpoint(unfinished) is not None
