"""A store in a bucket has the same guarantees as a local one; a simulated S3 server on this machine serves it."""

import json
import os
import time
import uuid

import pytest

from orch.core.errors import StoreUnreachable
from orch.store import CompactionReport, Store, StoreWarning
from orch.store.integrity import Condition
from tests.store.example import everything, ids, saved, write_example
from tests.store.processes import run, run_until_killed

boto3 = pytest.importorskip("boto3", reason="needs boto3 to talk to the S3 server")
moto_server = pytest.importorskip("moto.server", reason="needs moto[server] for an S3 server")
S3Backend = pytest.importorskip("moto.s3.models").S3Backend
S3AccessDeniedError = pytest.importorskip("moto.s3.exceptions").S3AccessDeniedError

LARGE = saved(b"new" * 5_000_000)


@pytest.fixture(scope="module")
def server():
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield server
    server.stop()


class Bucket:
    def __init__(self, server):
        host, port = server.get_host_and_port()
        self.endpoint = f"{host}:{port}"
        self.name = f"bucket-{uuid.uuid4().hex}"
        self.uri = f"s3://{self.name}/some/folder?endpoint_override={self.endpoint}&scheme=http"
        self.client = boto3.client("s3", endpoint_url=f"http://{self.endpoint}", region_name="us-east-1")
        self.client.create_bucket(Bucket=self.name)

    def keys(self, folder=""):
        listed = self.client.list_objects_v2(Bucket=self.name, Prefix=f"some/folder/{folder}")
        return [entry["Key"] for entry in listed.get("Contents", []) if not entry["Key"].endswith("/")]

    def get(self, key):
        return self.client.get_object(Bucket=self.name, Key=key)["Body"].read()

    def put(self, key, data):
        self.client.put_object(Bucket=self.name, Key=key, Body=data)

    def spoil(self, key):
        """Replace an object by garbage of the same size, so that fetching it again is noticed."""
        self.put(key, bytes(len(self.get(key))))


@pytest.fixture
def bucket(server, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test-secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("ORCH_CACHE", str(tmp_path / "cache"))
    return Bucket(server)


@pytest.fixture
def store(bucket):
    return Store.open(bucket.uri)


def cached(tmp_path):
    return sorted((tmp_path / "cache").rglob("*.parquet"))


def test_written_rows_are_read_back(bucket, store):
    assert not store.exists()
    assert store.done() == set()
    for seed in range(3):
        write_example(store, seed, minute=seed)
    store.discard(ids([1]), "wrong")
    for reader in (store, Store.open(bucket.uri)):
        assert reader.exists()
        assert reader.done() == ids([0, 2])
        assert reader.read("curves").num_rows == 6
    assert len(bucket.keys("trials/0/")) == 3


def test_files_are_put_replaced_listed_and_deleted(store):
    store.verify()
    store.put_checkpoint("t", saved(b"old"))
    store.put_checkpoint("t", saved(b"new" * 5_000_000))
    assert store.get_checkpoint("t") == saved(b"new" * 5_000_000)
    store.delete_checkpoint("t")
    store.delete_checkpoint("t")
    assert store.get_checkpoint("t") is None
    store.put_json("drivers/d.json", {"beat": 1})
    assert store.list_json("drivers") == {"d": {"beat": 1}}
    store.put_bytes("logs/a/b.txt", b"")
    assert store.list_files("logs") == ["logs/a/b.txt"]
    assert store.get_bytes("logs/a/b.txt") == b""
    conditions = {file.path: file.condition for file in store.examine()}
    assert conditions == {"drivers/d.json": Condition.CHECKED, "logs/a/b.txt": Condition.UNCHECKED}


@pytest.mark.parametrize("request_that_fails", ["create_multipart_upload", "upload_part", "complete_multipart_upload"])
@pytest.mark.parametrize("data", [LARGE, [LARGE[:7], memoryview(LARGE)[7:]]])
def test_a_large_file_is_sent_whole_or_not_at_all(store, monkeypatch, data, request_that_fails):
    store.put_checkpoint("t", saved(b"old"))
    right, calls = getattr(S3Backend, request_that_fails), []

    def fails_once(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 1:
            raise S3AccessDeniedError
        return right(*arguments, **options)

    monkeypatch.setattr(S3Backend, request_that_fails, fails_once)
    with pytest.raises(StoreUnreachable, match="cannot write to the store"):
        store.put_checkpoint("t", data)
    assert store.get_checkpoint("t") == saved(b"old")
    store.put_checkpoint("t", data)
    assert store.get_checkpoint("t") == LARGE


def test_a_part_is_sent_in_one_request(bucket, store, monkeypatch):
    uploads = []
    monkeypatch.setattr(
        "moto.s3.models.S3Backend.create_multipart_upload", lambda *args, **kwargs: uploads.append(args)
    )
    write_example(store)
    assert uploads == []
    assert len(bucket.keys("trials/")) == 1


def test_compaction_merges_parts_and_keeps_every_row(bucket, store):
    for seed in range(6):
        write_example(store, seed, minute=seed)
    before = everything(Store.open(bucket.uri))
    assert store.compact(min_parts=2) == CompactionReport(merged=12, written=2)
    assert [key.split("/")[3] for key in bucket.keys("trials/")] == ["1"]
    assert everything(Store.open(bucket.uri)) == everything(store) == before


@pytest.mark.thorough
@pytest.mark.parametrize("point", ["part-written", "part-renamed", "compacted-written", "part-deleted:2"])
def test_a_compaction_killed_at_any_point_neither_loses_nor_duplicates_rows(bucket, store, point):
    for seed in range(4):
        write_example(store, seed, minute=seed)
    before = everything(Store.open(bucket.uri))
    run_until_killed(point, "compact", bucket.uri)
    assert everything(Store.open(bucket.uri)) == before
    run("compact", bucket.uri)
    assert len(bucket.keys("trials/")) == 1
    assert everything(Store.open(bucket.uri)) == before


@pytest.mark.parametrize(("point", "finished"), [("curves-written", False), ("part-renamed:2", True)])
def test_a_writer_killed_at_any_point_leaves_a_whole_trial_or_none(bucket, store, point, finished):
    run_until_killed(point, "write", bucket.uri, 0, 1)
    assert store.done() == (ids([0]) if finished else set())


def test_a_second_process_uses_the_parts_that_the_first_has_cached(bucket, store, tmp_path):
    for seed in range(3):
        write_example(store, seed)
    assert json.loads(run("done", bucket.uri)) == sorted(ids(range(3)))
    for key in bucket.keys("trials/"):
        bucket.spoil(key)
    write_example(store, seed=3)
    assert json.loads(run("done", bucket.uri)) == sorted(ids(range(4)))


def test_a_process_without_the_cache_fetches_the_parts_again(bucket, store, tmp_path, monkeypatch):
    write_example(store)
    assert store.done() == ids([0])
    bucket.spoil(*bucket.keys("trials/"))
    monkeypatch.setenv("ORCH_CACHE", str(tmp_path / "elsewhere"))
    with pytest.warns(StoreWarning, match="damaged/trials"):
        assert Store.open(bucket.uri).done() == set()
    assert len(bucket.keys("damaged/trials/")) == 1
    assert bucket.keys("trials/") == []


@pytest.mark.parametrize("how", [lambda data: b"", lambda data: bytes(len(data))])
def test_a_part_whose_cached_copy_is_damaged_is_fetched_again(bucket, store, tmp_path, how):
    write_example(store)
    assert store.done() == ids([0])
    [copy] = cached(tmp_path)
    copy.write_bytes(how(copy.read_bytes()))
    assert Store.open(bucket.uri).done() == ids([0])
    assert len(copy.read_bytes()) > 1000
    assert len(bucket.keys("trials/")) == 1


def test_cached_copies_of_deleted_parts_are_removed(bucket, store, tmp_path):
    for seed in range(3):
        write_example(store, seed)
    store.done()
    old = cached(tmp_path)
    assert len(old) == 3
    store.compact("trials", min_parts=2)
    for path in old:
        os.utime(path, (0, time.time() - 3600))
    assert Store.open(bucket.uri).done() == ids(range(3))
    assert len(cached(tmp_path)) == 1


def test_a_machine_that_cannot_cache_parts_still_reads_them(bucket, store, tmp_path, monkeypatch):
    write_example(store)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ORCH_CACHE", str(tmp_path / "file"))
    assert Store.open(bucket.uri).done() == ids([0])


def test_a_missing_bucket_is_an_error_and_not_an_empty_store(bucket):
    store = Store.open(bucket.uri.replace(bucket.name, "misspelt"))
    for use in (store.done, store.exists):
        with pytest.raises(StoreUnreachable, match="has no bucket: check its name"):
            use()
    for use in (store.verify, lambda: write_example(store)):
        with pytest.raises(StoreUnreachable, match=r"cannot write to the store at s3://misspelt/some/folder.*check"):
            use()


def test_a_truncated_download_is_an_error_and_damages_nothing(bucket, store, monkeypatch):
    write_example(store)
    get = store._files.get
    with monkeypatch.context() as patch:
        patch.setattr(store._files, "get", lambda path: get(path)[:-10])
        with pytest.raises(StoreUnreachable, match="was not received completely"):
            store.done()
    assert bucket.keys("damaged/") == []
    assert store.done() == ids([0])


@pytest.mark.thorough
def test_an_unreachable_server_is_an_error_and_damages_nothing(bucket, store, tmp_path, monkeypatch):
    write_example(store)
    parts = bucket.keys("trials/")
    away = Store.open(bucket.uri.replace(bucket.endpoint, "127.0.0.1:1"))
    listed = store._files.sizes("trials")
    monkeypatch.setattr(away._files, "sizes", lambda folder: listed)
    with pytest.raises(StoreUnreachable, match="cannot read the store at"):
        away.done()
    assert bucket.keys("trials/") == parts
    assert bucket.keys("damaged/") == []
