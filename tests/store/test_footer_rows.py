"""Many small parts are read from the JSON lines in their footers: the same rows, and damage is still noticed."""

import datetime
import math

import pyarrow.parquet as pq
import pytest

from orch.core.errors import StoreTooNew
from orch.store import SCHEMAS, Event, Store, StoreWarning, footer_rows, part, table_reader
from orch.store.part import columns_checksum, encode, to_table
from tests.store.damage import DAMAGE, without_checksum
from tests.store.example import START, everything, ids, parts, write_example

NUM_PARTS = 20


@pytest.fixture
def store(tmp_path):
    store = Store.open(tmp_path)
    for seed in range(NUM_PARTS):
        write_example(store, seed, accuracy=seed / 7)
    return store


def as_parquet(store, monkeypatch):
    """Return all rows, read from the Parquet data and not from the lines in the footers."""
    with monkeypatch.context() as patch:
        patch.setattr(table_reader, "_MANY", math.inf)
        return everything(Store.open(store.uri))


def no_parquet(*arguments, **options):
    raise AssertionError("a part was read as Parquet")


def test_many_small_parts_are_read_without_parsing_their_footers(store, monkeypatch):
    monkeypatch.setattr(table_reader, "decode", no_parquet)
    assert Store.open(store.uri).done() == ids(range(NUM_PARTS))


def test_the_lines_in_footers_give_the_same_rows_as_the_parquet_data(store, monkeypatch):
    row = {"attempt_id": "a", "trial_id": "t", "event": Event.START, "at": START, "pid": 2**62}
    awkward = {"host": 'a "host"\n\\ of 1\u2028 é 😀', "worker": "", "step": -1, "traceback": "lines:0000000000000000"}
    early = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=datetime.UTC)
    for number in range(NUM_PARTS):
        store.write("attempts", [row | awkward | {"attempt_id": str(number), "at": early}])
    assert everything(Store.open(store.uri)) == as_parquet(store, monkeypatch)
    assert Store.open(store.uri).read("trials").schema.equals(SCHEMAS["trials"], check_metadata=True)
    assert Store.open(store.uri).read("attempts")["at"][0].as_py() == early


def test_a_part_of_several_rows_gives_all_of_them(tmp_path):
    store = Store.open(tmp_path)
    for number in range(NUM_PARTS):
        attempt = {"attempt_id": str(number), "trial_id": "t", "at": START}
        store.write("attempts", [attempt | {"event": "start"}, attempt | {"event": "end", "outcome": "finished"}])
    rows = Store.open(tmp_path).read("attempts", ["attempt_id", "event"]).to_pylist()
    assert len({(row["attempt_id"], row["event"]) for row in rows}) == 2 * NUM_PARTS


def test_nan_and_infinity_are_read_from_the_parquet_data(store):
    write_example(store, NUM_PARTS, accuracy=math.nan)
    write_example(store, NUM_PARTS + 1, accuracy=math.inf)
    accuracies = Store.open(store.uri).read("trials", ["ood_accuracy"])["ood_accuracy"].to_pylist()
    assert len(accuracies) == NUM_PARTS + 2
    assert sum(math.isnan(accuracy) for accuracy in accuracies) == 1
    assert math.inf in accuracies


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_is_noticed_among_many_parts_too(store, tmp_path, how):
    damaged = parts(tmp_path, "trials")[3]
    damaged.write_bytes(DAMAGE[how](damaged.read_bytes()))
    with pytest.warns(StoreWarning, match=damaged.name):
        trials = Store.open(tmp_path).read("trials")
    assert set(trials["trial_id"].to_pylist()) == ids(set(range(NUM_PARTS)) - {3})
    assert (tmp_path / "damaged" / "trials" / damaged.name).exists()


def test_damaged_lines_of_a_part_without_a_checksum_in_its_name_are_not_used(store, tmp_path):
    changed, *others = (without_checksum(path) for path in parts(tmp_path, "trials"))
    assert len(others) == NUM_PARTS - 1
    data = changed.read_bytes()
    assert data.count(b'"task":"modular') == 1
    changed.write_bytes(data.replace(b'"task":"modular', b'"task":"Modular'))
    assert set(Store.open(tmp_path).read("trials")["task"].to_pylist()) == {"modular_addition"}


def test_parts_written_with_other_columns_are_read_as_parquet(store, monkeypatch):
    fewer = SCHEMAS["trials"].remove(SCHEMAS["trials"].get_field_index("host"))
    monkeypatch.setattr("orch.store.store.make_schemas", lambda user_types: {**SCHEMAS, "trials": fewer})
    trials = Store.open(store.uri).read("trials")
    assert trials.num_rows == NUM_PARTS
    assert "host" in trials.column_names


def test_many_parts_of_a_later_version_ask_for_an_upgrade(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(part, "SCHEMA_VERSION", 2)
        for seed in range(NUM_PARTS):
            write_example(Store.open(tmp_path), seed)
    with pytest.raises(StoreTooNew):
        Store.open(tmp_path).done()


def test_a_merged_part_has_no_lines_because_they_would_hide_what_it_replaces(store, tmp_path):
    data = store.read("trials").slice(0, 2)
    merged = encode("trials", SCHEMAS["trials"], data, replaces=["trials/0/a.parquet"])
    original = encode("trials", SCHEMAS["trials"], data)
    assert footer_rows.find_lines(merged, columns_checksum(SCHEMAS["trials"]), checked=False) is None
    assert footer_rows.find_lines(original, columns_checksum(SCHEMAS["trials"]), checked=False) is not None


def test_only_a_few_short_rows_are_repeated_in_the_footer(tmp_path):
    row = {"attempt_id": "a", "trial_id": "t", "event": "start"}

    def has_lines(rows):
        data = encode("attempts", SCHEMAS["attempts"], to_table("attempts", SCHEMAS["attempts"], rows))
        (tmp_path / "part").write_bytes(data)
        return footer_rows.KEY.encode() in pq.read_metadata(tmp_path / "part").metadata

    assert has_lines([row])
    assert not has_lines([row] * (footer_rows.MOST_ROWS + 1))
    assert not has_lines([row | {"traceback": "x" * footer_rows.MOST_BYTES}])
    assert not has_lines([])


def test_compaction_of_many_small_parts_loses_and_changes_nothing(store, monkeypatch):
    before = as_parquet(store, monkeypatch)
    store.compact(min_parts=2)
    assert everything(Store.open(store.uri)) == before
