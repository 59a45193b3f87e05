import errno
import os

import pyarrow.parquet as pq
import pytest

from orch.core.errors import StoreUnreachable
from orch.store import Store, StoreWarning
from tests.store.attempts import write_attempt
from tests.store.damage import DAMAGE
from tests.store.example import ids, parts, write_example


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_part_is_named_in_a_warning_and_moved_away(tmp_path, how):
    store = Store.open(tmp_path)
    write_example(store, seed=1)
    [damaged] = parts(tmp_path, "trials")
    write_example(store, seed=2)
    broken = DAMAGE[how](damaged.read_bytes())
    damaged.write_bytes(broken)
    with pytest.warns(StoreWarning, match=damaged.name) as caught:
        table = Store.open(tmp_path).read("trials")
    assert len(caught) == 1
    assert set(table["trial_id"].to_pylist()) == ids([2])
    assert not damaged.exists()
    assert (tmp_path / "damaged" / "trials" / damaged.name).read_bytes() == broken
    assert Store.open(tmp_path).done() == ids([2])
    write_example(store, seed=1, attempt="again")
    assert Store.open(tmp_path).done() == ids([1, 2])


def test_compaction_skips_a_damaged_part(tmp_path):
    store = Store.open(tmp_path)
    for seed in range(4):
        write_example(store, seed)
    damaged = parts(tmp_path, "trials")[0]
    damaged.write_bytes(b"garbage")
    with pytest.warns(StoreWarning, match=damaged.name):
        assert store.compact("trials", min_parts=2).merged == 3
    assert store.done() == ids([1, 2, 3])


def test_a_damaged_part_that_cannot_be_moved_is_skipped(tmp_path, monkeypatch):
    def refuse(self, path, target):
        raise StoreUnreachable("read-only")

    monkeypatch.setattr("orch.store.local_files.LocalFiles.move", refuse)
    store = Store.open(tmp_path)
    write_example(store, seed=1)
    [damaged] = parts(tmp_path, "trials")
    damaged.write_bytes(b"garbage")
    write_example(store, seed=2)
    with pytest.warns(StoreWarning, match="left where it is"):
        assert store.done() == ids([2])
    assert store.done() == ids([2])
    assert damaged.exists()


def test_a_read_after_a_read_that_failed_halfway_is_complete(tmp_path, monkeypatch):
    store = Store.open(tmp_path)
    for seed in range(4):
        write_example(store, seed)
        if seed == 2:
            store.compact(min_parts=2)
    reader = store._readers["trials"]
    load = reader.load

    def fail_at_level_0(wanted, columns):
        if wanted[0].level == 0:
            raise StoreUnreachable("the network is gone")
        return load(wanted, columns)

    with monkeypatch.context() as patch:
        patch.setattr(reader, "load", fail_at_level_0)
        with pytest.raises(StoreUnreachable):
            store.done()
    assert store.done() == ids(range(4))


def test_a_read_after_a_warning_raised_as_an_error_is_complete(tmp_path):
    store = Store.open(tmp_path)
    for seed in range(4):
        write_example(store, seed)
        if seed == 1:
            store.compact(min_parts=2)
    parts(tmp_path, "trials")[0].write_bytes(b"garbage")
    with pytest.raises(StoreWarning):
        store.done()
    assert store.done() == ids([0, 1, 3])


@pytest.mark.parametrize("place", ["builtins.open", "pyarrow.parquet.ParquetFile.read"])
def test_a_transient_read_failure_is_an_error_and_moves_no_part_away(tmp_path, monkeypatch, place):
    store = Store.open(tmp_path)
    write_example(store)

    def fail(*arguments, **options):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(place, fail)
        with pytest.raises(StoreUnreachable, match="Input/output error"):
            store.done()
    assert not (tmp_path / "damaged").exists()
    assert store.done() == ids([0])


def test_a_part_merged_between_listing_and_reading_is_read_from_the_merged_part(tmp_path, monkeypatch):
    store, other = Store.open(tmp_path), Store.open(tmp_path)
    for seed in range(3):
        write_example(store, seed)
    reader = store._readers["trials"]
    list_parts = reader.parts

    def list_then_lose():
        listed = list_parts()
        other.compact(min_parts=2)
        return listed

    monkeypatch.setattr(reader, "parts", list_then_lose)
    assert store.done() == ids(range(3))
    assert len(parts(tmp_path, "trials")) == 1


def test_a_stale_file_handle_of_a_network_file_system_is_retried(tmp_path, monkeypatch):
    store = Store.open(tmp_path)
    write_example(store)
    source, stale = store._readers["trials"]._source, [OSError(errno.ESTALE, os.strerror(errno.ESTALE))]

    def stale_at_first(part):
        if stale:
            raise stale.pop()
        return source(part)

    monkeypatch.setattr(store._readers["trials"], "_source", stale_at_first)
    assert store.done() == ids([0])
    assert not stale


def test_files_that_are_not_parts_are_ignored(tmp_path):
    store = Store.open(tmp_path)
    write_example(store)
    for name in (".half-written.parquet", "notes.txt"):
        (tmp_path / "trials" / "0" / name).write_text("hello")
    assert Store.open(tmp_path).done() == ids([0])
    assert (tmp_path / "trials" / "0" / "notes.txt").exists()


def test_a_part_with_two_columns_of_one_name_is_set_aside(tmp_path):
    store = Store.open(tmp_path)
    write_attempt(store, "a", "start", 0)
    rows = store.read("attempts")
    pq.write_table(rows.append_column("at", rows["at"]), tmp_path / "attempts" / "0" / "odd.parquet")
    with pytest.warns(StoreWarning, match=r"attempts/0/odd.parquet .* \(it has two columns of one name\)"):
        assert Store.open(tmp_path).read("attempts").equals(rows)
