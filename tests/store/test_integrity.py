"""Every byte is under a checksum: flipped bits are noticed, and older files are read and said to have none."""

import json
import tracemalloc

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from orch.analysis.bundle import bundle
from orch.cli import main
from orch.core.errors import DamagedFile
from orch.store import Store, StoreWarning, bundled
from tests.store import bit_flips
from tests.store.bit_flips import HARMLESS, NOTICED, flip_bits, remove_checksums
from tests.store.damage import without_checksum
from tests.store.example import everything, ids, parts, saved, write_example

A_SWEEP = {"sweeps": ["demo"], "scale": "laptop", "where": [], "seconds": {}, "waiting": 0}


def verify(location, expect=0):
    result = CliRunner().invoke(main, ["verify", "--store", str(location), "--json"])
    assert result.exit_code == expect, result.output
    return {file["path"]: file["condition"] for file in json.loads(result.stdout)}


@pytest.fixture
def store(tmp_path):
    store = Store.open(tmp_path / "runs")
    for seed in range(4):
        write_example(store, seed)
        if seed == 1:
            store.compact(min_parts=2)
    store.put_checkpoint("t", saved(b"x"))
    store.put_weights("t", saved(b"y"))
    store.put_json("sweeps/a.json", A_SWEEP)
    return store


@pytest.mark.thorough
def test_every_flipped_bit_of_every_kind_of_file_is_noticed(tmp_path):
    counts = flip_bits(tmp_path, flips=48, seed=1)
    assert {verdict for verdicts in counts.values() for verdict in verdicts} == {NOTICED}
    tables = {f"{table}, level {level}" for table in ("trials", "curves", "attempts") for level in (0, 1, 2)}
    others = {"withdrawn, level 1", "checkpoints", "weights", *bit_flips.RECORDS, "bundle: bundle.json"}
    assert tables | others < counts.keys(), "a kind of file is left out"


@pytest.mark.long
def test_ten_thousand_flipped_bits_are_noticed(tmp_path):
    counts = flip_bits(tmp_path, flips=10_000, seed=0)
    assert {verdict for verdicts in counts.values() for verdict in verdicts} <= {NOTICED, HARMLESS}


def test_verify_finds_every_file_under_a_checksum_but_logs(store):
    store.put_bytes("logs/a.jsonl", b"{}\n")
    conditions = verify(store.uri)
    assert conditions.pop("logs/a.jsonl") == "not under a checksum"
    assert len(conditions) == 9
    assert set(conditions.values()) == {"under a checksum"}


def test_verify_names_what_is_damaged_and_changes_nothing(store, tmp_path):
    damaged = parts(tmp_path / "runs", "trials")[0]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"X")
    name = damaged.relative_to(tmp_path / "runs").as_posix()
    assert [path for path, state in verify(store.uri, expect=1).items() if state == "damaged"] == [name]
    shown = CliRunner().invoke(main, ["verify", "--store", store.uri])
    assert (shown.exit_code, damaged.exists()) == (1, True)
    assert f"{name} is damaged (its checksum is wrong)\n1 file damaged: " in shown.stderr
    with pytest.warns(StoreWarning, match=damaged.name):
        Store.open(store.uri).done()
    assert verify(store.uri)[f"damaged/{damaged.parts[-3]}/{damaged.name}"] == "set aside before"


def test_verify_needs_little_memory_for_files_of_any_size(store, tmp_path):
    """A file of zeros that takes no room on the disk may be said to have terabytes."""
    names = ("sweeps/a.json", "logs/a.jsonl", "trials/0/a.parquet", "weights/b.safetensors", "notes.txt")
    for name in names:
        path = tmp_path / "runs" / name
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            file.truncate(1 << 29)
    tracemalloc.start()
    conditions = verify(store.uri, expect=1)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1 << 28
    expected = ["damaged", "not under a checksum", "damaged", "damaged", "not under a checksum"]
    assert [conditions[name] for name in names] == expected


def test_files_from_before_there_were_checksums_are_read_and_compaction_puts_tables_under_one(store, tmp_path):
    before = everything(Store.open(store.uri))
    remove_checksums(tmp_path / "runs")
    old = Store.open(store.uri)
    assert everything(old) == before
    assert (old.get_json("sweeps/a.json"), old.get_checkpoint("t")[-1:]) == (A_SWEEP, b"x")
    assert set(verify(store.uri).values()) == {"not under a checksum"}
    Store.open(store.uri).compact(min_parts=2)
    conditions = verify(store.uri)
    assert {state for path, state in conditions.items() if path.endswith(".parquet")} == {"under a checksum"}
    assert everything(Store.open(store.uri)) == before


@pytest.mark.parametrize("folder", ["checkpoints", "weights"])
def test_a_checkpoint_with_a_changed_tensor_or_name_is_set_aside_and_the_trial_starts_anew(store, tmp_path, folder):
    path = tmp_path / "runs" / folder / "t.safetensors"
    data = path.read_bytes()
    for wrong in (data[:-1] + b"z", data.replace(b'"x":{', b'"q":{'), data.replace(b"crc32", b"crc33"), data[:-1]):
        path.write_bytes(wrong)
        with pytest.warns(StoreWarning, match=f"{folder}/t.safetensors .* was moved to damaged/{folder}"):
            found = store.get_checkpoint("t") if folder == "checkpoints" else store.get_weights("t")
        assert found is None
        assert not path.exists()
        assert (tmp_path / "runs" / "damaged" / folder / "t.safetensors").read_bytes() == wrong


def test_a_file_that_was_received_incompletely_is_read_again_and_not_set_aside(store, tmp_path, monkeypatch):
    get, calls = store._files.get, []

    def half_at_first(path, most=None):
        calls.append(path)
        return get(path, most)[: None if len(calls) > 1 else 10]

    monkeypatch.setattr(store._files, "get", half_at_first)
    assert store.get_json("sweeps/a.json") == A_SWEEP
    assert (tmp_path / "runs" / "sweeps" / "a.json").exists()


def test_a_damaged_footer_names_no_later_version_and_no_other_column(tmp_path):
    store = Store.open(tmp_path)
    write_example(store)
    [path] = parts(tmp_path, "trials")
    data = path.read_bytes()
    version, later = b"orch.schema_version\x18\x011", b"orch.schema_version\x18\x013"
    for old, new in ((version, later), (b"ood_accuracy", b"ood_accuracx")):
        assert old in data
        path.write_bytes(data.replace(old, new))
        with pytest.warns(StoreWarning, match="its checksum is wrong"):
            assert Store.open(tmp_path).done() == set()
        path.write_bytes(data)
    path = without_checksum(path)
    path.write_bytes(data.replace(version, later))
    with pytest.warns(StoreWarning, match="it names version 3 of the schema, which came after checksums"):
        Store.open(tmp_path).done()


def test_a_part_can_still_be_read_by_anything_that_reads_parquet(store, tmp_path):
    found = [pq.read_table(path)["trial_id"].to_pylist() for path in parts(tmp_path / "runs", "trials")]
    assert {trial_id for each in found for trial_id in each} == ids(range(4))


@pytest.fixture
def shipped(store, tmp_path, monkeypatch):
    bundle([store], tmp_path / "bundle")
    monkeypatch.setattr(bundled, "FOLDER", tmp_path / "bundle")
    return tmp_path / "bundle"


def test_the_list_of_a_bundle_puts_older_files_under_a_checksum(shipped):
    [part] = parts(shipped, "trials")
    listed = bundled.BundledFiles().listed
    assert set(verify("bundled").values()) == {"under a checksum"}
    assert listed[part.relative_to(shipped).as_posix()] == part.name.rpartition("-")[2].removesuffix(".parquet")
    record = shipped / "sweeps" / "a.json"
    record.write_bytes(record.read_bytes().replace(b"demo", b"dem0"))
    with pytest.raises(DamagedFile, match=r"sweeps/a.json of the bundled results is damaged"):
        Store.open("bundled").list_json("sweeps")
    record.unlink()
    assert verify("bundled", expect=1)["sweeps/a.json"] == "missing"


def test_the_bundle_that_ships_is_whole():
    conditions = verify("bundled")
    assert set(conditions.values()) == {"under a checksum"}
    assert len(conditions) > 3
