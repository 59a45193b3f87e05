import pytest

from orch.store import Store, StoreWarning
from tests.store.example import saved


def test_checkpoints_and_weights_are_read_as_written(tmp_path):
    store = Store.open(tmp_path / "store")
    assert store.get_checkpoint("t") is None
    assert store.get_weights("t") is None
    store.put_checkpoint("t", saved(b"one"))
    store.put_weights("t", saved(b"two"))
    assert (store.get_checkpoint("t"), store.get_weights("t")) == (saved(b"one"), saved(b"two"))
    store.put_checkpoint("t", saved(b"two"))
    assert store.get_checkpoint("t") == saved(b"two")
    assert (tmp_path / "store" / "checkpoints" / "t.safetensors").read_bytes() == saved(b"two")
    store.delete_checkpoint("t")
    store.delete_checkpoint("t")
    assert store.get_checkpoint("t") is None


def test_json_files_are_listed_by_name_without_damaged_ones(tmp_path):
    store = Store.open(tmp_path)
    store.put_json("drivers/one.json", {"beat": 1})
    store.put_json("drivers/two.json", [2])
    store.put_bytes("drivers/broken.json", b'{"beat": ')
    (tmp_path / "drivers" / ".half.json").write_text("{}")
    with pytest.warns(StoreWarning, match=r"drivers/broken.json .* was moved to damaged/drivers/broken.json"):
        assert store.list_json("drivers") == {"one": {"beat": 1}, "two": [2]}
    assert store.get_json("drivers/one.json") == {"beat": 1}
    assert store.get_json("drivers/broken.json") is None
    assert store.get_json("drivers/none.json") is None
    store.delete("drivers/one.json")
    assert store.list_json("drivers") == {"two": [2]}


def test_logs_are_listed_and_read(tmp_path):
    store = Store.open(tmp_path)
    store.put_bytes("logs/b/worker.txt", b"hello")
    store.put_bytes("logs/a.txt", b"")
    assert store.list_files("logs") == ["logs/a.txt", "logs/b/worker.txt"]
    assert store.get_bytes("logs/b/worker.txt") == b"hello"


@pytest.mark.parametrize("path", ["trials/0/x.parquet", "../outside", "/etc/passwd", "logs/.hidden", "logs//x"])
def test_a_path_outside_the_store_or_inside_a_table_is_refused(tmp_path, path):
    with pytest.raises(AssertionError):
        Store.open(tmp_path).put_bytes(path, b"")
