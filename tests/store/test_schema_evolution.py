import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orch.core.checksum import checksum
from orch.core.errors import StoreTooNew
from orch.store import SCHEMAS, Store
from orch.store.schema_union import union
from tests.store.example import START, write_example


def write_by_hand(root, name, columns, version=1, table="trials"):
    folder = root / table / "0"
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {"orch.table": table, "orch.schema_version": str(version)}
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)
    if version > 1:  # from then on, names have a checksum
        path.rename(folder / f"{name}-{name}-{checksum([path.read_bytes()])}.parquet")


def an_old_row(**more):
    times = pa.array([START], pa.timestamp("us", tz="UTC"))
    return {"trial_id": ["old"], "attempt_id": ["x"], "finished_at": times} | more


def test_a_column_missing_from_an_older_part_is_null_in_its_rows(tmp_path):
    write_by_hand(tmp_path, "old", an_old_row())
    store = Store.open(tmp_path)
    trial_id = write_example(store)
    rows = {row["trial_id"]: row for row in store.read("trials").to_pylist()}
    assert rows["old"]["learning_rate"] is None
    assert rows[trial_id]["learning_rate"] == 1e-4
    assert store.read("trials").schema.equals(SCHEMAS["trials"])


def test_a_column_that_only_a_newer_part_has_is_kept(tmp_path):
    write_by_hand(tmp_path, "new", an_old_row(sparsity=[0.5]))
    store = Store.open(tmp_path)
    write_example(store)
    assert store.read("trials").column_names[-1] == "sparsity"
    assert sorted(map(str, store.read("trials", ["sparsity"])["sparsity"].to_pylist())) == ["0.5", "None"]


def test_a_narrower_type_is_widened(tmp_path):
    write_by_hand(tmp_path, "old", an_old_row(steps=pa.array([7], pa.int32()), width=pa.nulls(1)))
    assert Store.open(tmp_path).read("trials").schema.field("steps").type == pa.int64()
    store = Store.open(tmp_path)
    write_example(store, steps=9)
    assert sorted(store.read("trials")["steps"].to_pylist()) == [7, 9]
    assert store.read("trials").schema.field("width").type == pa.int64()


def test_whole_numbers_beyond_the_digits_of_a_float_are_rounded_beside_floats():
    found = union([pa.table({"x": [2**60 + 1]}), pa.table({"x": [0.5]})])
    assert found["x"].to_pylist() == [float(2**60), 0.5]


def test_a_column_of_irreconcilable_types_becomes_text(tmp_path):
    write_by_hand(tmp_path, "a", an_old_row(extra=["word"]))
    write_by_hand(tmp_path, "b", an_old_row(trial_id=["other"], extra=[5]))
    write_by_hand(tmp_path, "c", an_old_row(trial_id=["third"], extra=[[5, 6]]))
    assert sorted(Store.open(tmp_path).read("trials", ["extra"])["extra"].to_pylist()) == ["5", "[5, 6]", "word"]


def test_a_part_without_a_version_is_read_as_version_1(tmp_path):
    folder = tmp_path / "trials"
    folder.mkdir(parents=True)
    pq.write_table(pa.table(an_old_row()), folder / "flat.parquet")
    assert Store.open(tmp_path).done() == {"old"}


USES = {
    "done": Store.done,
    "read": lambda store: store.read("trials"),
    "compact": lambda store: store.compact(min_parts=2),
}


@pytest.mark.parametrize("use", USES)
def test_a_part_of_a_later_version_asks_for_an_upgrade_and_is_not_moved(tmp_path, use):
    for name in "ab":
        write_by_hand(tmp_path, name, an_old_row(), version=2)
    store = Store.open(tmp_path)
    with pytest.raises(StoreTooNew, match=r"the store at .*schema 2, .* upgrade orch"):
        USES[use](store)
    assert len(list((tmp_path / "trials" / "0").iterdir())) == 2


def test_compaction_unites_parts_of_differing_schemas(tmp_path):
    write_by_hand(tmp_path, "old", an_old_row(steps=pa.array([7], pa.int32())))
    write_by_hand(tmp_path, "new", an_old_row(trial_id=["new"], sparsity=[0.5]))
    store = Store.open(tmp_path)
    trial_id = write_example(store, steps=9)
    before = sorted(Store.open(tmp_path).read("trials").to_pylist(), key=repr)
    assert store.compact(min_parts=2).merged == 3
    store = Store.open(tmp_path)
    assert sorted(store.read("trials").to_pylist(), key=repr) == before
    assert store.done() == {"old", "new", trial_id}
    [part] = (tmp_path / "trials" / "1").iterdir()
    assert pq.read_table(part).num_rows == 3
