import datetime
import os
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orch.core.errors import StoreUnreachable, UnknownName
from orch.store import DEFAULT_STORE, SCHEMAS, Store
from tests.store.example import START, example_result, ids, parts, write_example


def test_written_rows_are_read_back(tmp_path):
    trial_id = write_example(Store.open(tmp_path), seed=3, accuracy=0.75)
    store = Store.open(tmp_path)
    trials, curves = store.read("trials").to_pylist(), store.read("curves").to_pylist()
    assert store.done() == {trial_id}
    assert len(trials) == 1
    assert (trials[0]["trial_id"], trials[0]["init_seed"], trials[0]["ood_accuracy"]) == (trial_id, 3, 0.75)
    assert trials[0]["finished_at"] == START
    assert trials[0]["length_curve"][0] == {"length": 10, "accuracy": 0.75, "accuracy_raw": 0.8, "majority": 0.125}
    assert [(row["step"], row["validation_loss"]) for row in curves] == [(100, 1.0), (200, 0.5), (300, 1 / 3)]


def test_a_part_can_be_read_with_nothing_but_pyarrow(tmp_path):
    trial_id = write_example(Store.open(tmp_path))
    [path] = parts(tmp_path, "trials")
    table = pq.read_table(path)
    assert table["trial_id"].to_pylist() == [trial_id]
    assert table.schema.field("finished_at").type == pa.timestamp("us", tz="UTC")
    metadata = pq.read_metadata(path).metadata
    assert (metadata[b"orch.schema_version"], metadata[b"orch.table"]) == (b"1", b"trials")


def test_a_table_read_has_every_column_with_its_description(tmp_path):
    write_example(Store.open(tmp_path))
    for store in (Store.open(tmp_path), Store.open(tmp_path / "empty")):
        for table, schema in SCHEMAS.items():
            assert store.read(table).schema.equals(schema, check_metadata=True)


def test_only_the_requested_columns_are_read_in_the_requested_order(tmp_path):
    store = Store.open(tmp_path)
    write_example(store)
    assert store.read("trials", ["model", "trial_id"]).column_names == ["model", "trial_id"]
    store.read("trials")
    assert store.read("trials", ["model", "trial_id"]).column_names == ["model", "trial_id"]


@pytest.mark.parametrize("warm", [False, True])
def test_an_unknown_column_or_table_is_an_error_that_suggests_the_nearest(tmp_path, warm):
    store = Store.open(tmp_path)
    write_example(store)
    if warm:
        store.read("trials")
    with pytest.raises(UnknownName, match="did you mean 'learning_rate'"):
        store.read("trials", ["learning_rat"])
    with pytest.raises(UnknownName, match="did you mean 'trials'"):
        store.read("trails")
    with pytest.raises(UnknownName, match="did you mean 'trial_id'"):
        store.write("withdrawn", [{"trial": "x"}])


def test_opening_and_reading_a_store_creates_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store.open()
    assert store.location == DEFAULT_STORE
    assert not store.exists()
    assert store.done() == set()
    assert store.list_json("drivers") == {}
    assert store.discard(["x"], "no reason") == 0
    assert not os.listdir(tmp_path)
    write_example(store)
    assert store.exists()
    assert os.listdir(tmp_path) == [DEFAULT_STORE]


def test_a_relative_location_is_resolved_when_the_store_is_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store.open("here")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    write_example(store)
    assert Store.open(tmp_path / "here").done() == ids([0])


def test_a_file_uri_is_a_local_folder(tmp_path):
    write_example(Store.open(f"file://{tmp_path}/a%20b"))
    assert Store.open(tmp_path / "a b").done() == ids([0])


def test_a_store_can_be_pickled(tmp_path):
    write_example(Store.open(tmp_path))
    assert pickle.loads(pickle.dumps(Store.open(tmp_path))).done() == ids([0])


def test_a_second_read_reads_only_new_parts(tmp_path):
    store = Store.open(tmp_path)
    write_example(store, seed=1)
    assert store.done() == ids([1])
    [old] = parts(tmp_path, "trials")
    # Reading it again would warn about damage, and warnings are errors in tests.
    old.write_bytes(b"x" * old.stat().st_size)
    write_example(store, seed=2)
    assert store.done() == ids([1, 2])


def test_reading_an_unchanged_store_returns_the_same_table(tmp_path):
    store = Store.open(tmp_path)
    write_example(store)
    assert store.read("trials") is store.read("trials")


def test_rows_kept_in_memory_are_never_out_of_date(tmp_path):
    store = Store.open(tmp_path)
    for seed in range(3):
        write_example(store, seed)
        assert store.done() == ids(range(seed + 1))
        assert len(store.read("curves", ["step"])) == 3 * (seed + 1)
    write_example(store, seed=3)
    assert store.read("trials").num_rows == 4
    assert store.read("curves").num_rows == 12
    assert store.done() == ids(range(4))
    assert len(store.read("curves", ["step"])) == 12
    store.discard(ids([0]), "wrong")
    assert store.done() == ids(range(1, 4))
    assert len(store.read("curves", ["step"])) == 9


def test_attempts_have_one_row_for_each_event(tmp_path):
    store = Store.open(tmp_path)
    start = {"attempt_id": "a", "trial_id": "t", "event": "start", "at": START, "host": "h"}
    late = START + datetime.timedelta(minutes=5)
    store.write("attempts", [start, start | {"at": late}])
    store.write("attempts", [start | {"event": "end", "outcome": "failed", "at": late}])
    rows = store.read("attempts").to_pylist()
    assert [(row["event"], row["at"], row["outcome"]) for row in rows] == [
        ("start", START, None),
        ("end", late, "failed"),
    ]


@pytest.mark.parametrize("wrong", [{"event": "middle"}, {"event": "end", "outcome": "lucky"}])
def test_an_attempt_has_a_known_event_and_outcome(tmp_path, wrong):
    with pytest.raises(ValueError, match=r"middle|lucky"):
        Store.open(tmp_path).write("attempts", [{"attempt_id": "a", **wrong}])


def test_the_error_for_a_location_that_is_not_a_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    for location in (tmp_path / "file", tmp_path / "file" / "below"):
        store = Store.open(location)
        for use in (store.done, store.verify, lambda store=store: write_example(store), store.compact):
            with pytest.raises(StoreUnreachable, match=f"the store at {location} .*Not a directory.*check") as caught:
                use()
            assert "\n" not in str(caught.value)


def test_verifying_a_store_leaves_no_file(tmp_path):
    store = Store.open(tmp_path)
    store.verify()
    assert store.list_files("logs") == []


def test_verifying_notices_a_store_that_discards_writes(tmp_path, monkeypatch):
    store = Store.open(tmp_path)
    monkeypatch.setattr("orch.store.local_files.LocalFiles.put", lambda *args, **kwargs: None)
    with pytest.raises(StoreUnreachable, match="does not return what was written"):
        store.verify()


def test_example_trials_differ():
    assert example_result(1).trial.id != example_result(2).trial.id
