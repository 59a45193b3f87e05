"""Notices of clouds that a machine is about to be reclaimed."""

import threading

import pytest

from orch.running import reclaim
from orch.running.reclaim import ReclaimWatch
from tests.cluster.metadata import metadata_server
from tests.engine.conftest import wait_for


@pytest.fixture(autouse=True)
def _no_cloud(monkeypatch, tmp_path):
    """Start on a machine of nobody, and ask often."""
    for name in ("ORCH_CLOUD", "ORCH_METADATA", "ORCH_RECLAIM_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(reclaim, "FIRMWARE", tmp_path / "absent")
    monkeypatch.setattr(reclaim, "POLL_SECONDS", 0.01)


def watching() -> bool:
    return any(thread.name == "orch-reclaim" for thread in threading.enumerate())


@pytest.mark.parametrize(("cloud", "said"), [("aws", "EC2 will terminate this machine"), ("gcp", "Google Cloud")])
def test_the_notice_of_a_cloud_is_seen_when_it_comes_and_not_before(cloud, said, monkeypatch):
    with metadata_server() as server:
        monkeypatch.setenv("ORCH_CLOUD", cloud)
        monkeypatch.setenv("ORCH_METADATA", server.address)
        watch = ReclaimWatch()
        wait_for(lambda: server.num_asked > 3)
        assert watch.notice is None
        server.reclaimed = True
        assert wait_for(lambda: watch.notice).startswith(said)
        wait_for(lambda: not watching())


def test_a_file_is_a_notice_too(tmp_path, monkeypatch):
    monkeypatch.setenv("ORCH_RECLAIM_FILE", str(tmp_path / "reclaimed"))
    watch = ReclaimWatch()
    assert watch.notice is None
    (tmp_path / "reclaimed").touch()
    assert "reclaimed says so" in wait_for(lambda: watch.notice)
    wait_for(lambda: not watching())


@pytest.mark.parametrize("vendor", ["LENOVO\n", None])
def test_elsewhere_nothing_is_asked(vendor, tmp_path, monkeypatch):
    if vendor:
        monkeypatch.setattr(reclaim, "FIRMWARE", tmp_path / "vendor")
        (tmp_path / "vendor").write_text(vendor)
    assert ReclaimWatch().notice is None
    assert not watching()


@pytest.mark.parametrize(("vendor", "cloud"), [("Amazon EC2\n", "aws"), ("Google\n", "gcp")])
def test_a_cloud_is_known_by_the_firmware_unless_it_is_turned_off(vendor, cloud, tmp_path, monkeypatch):
    monkeypatch.setattr(reclaim, "FIRMWARE", tmp_path / "vendor")
    (tmp_path / "vendor").write_text(vendor)
    assert reclaim.find_cloud() == cloud
    monkeypatch.setenv("ORCH_CLOUD", "none")
    assert reclaim.find_cloud() is None


def test_a_server_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setenv("ORCH_CLOUD", "aws")
    monkeypatch.setenv("ORCH_METADATA", "http://127.0.0.1:9")  # where nobody listens
    watch = ReclaimWatch()
    wait_for(lambda: not watching())
    assert watch.notice is None
