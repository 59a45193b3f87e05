"""A file is written as a whole or not at all."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from orch.core.atomic_write import write_atomically
from orch.core.errors import UnsafePath


def test_a_file_is_created_and_replaced(tmp_path):
    for data in (b"first", [b"sec", b"ond"]):
        write_atomically(tmp_path / "file", data)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"second")]


@pytest.mark.parametrize("durable", [True, False])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, durable):
    (tmp_path / "file").write_bytes(b"old")

    def pieces():
        yield b"new"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_atomically(tmp_path / "file", pieces(), durable=durable)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"old")]


def test_before_the_rename_the_new_file_is_whole_and_hidden(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    seen = {}

    def look(step):
        if step == "written":
            seen.update({path.name.startswith(".file."): path.read_bytes() for path in tmp_path.iterdir()})

    write_atomically(tmp_path / "file", b"new", durable=True, passing=look)
    assert seen == {True: b"new", False: b"old"}


def test_a_durable_write_creates_folders_and_syncs_the_file_and_every_folder(tmp_path, monkeypatch):
    synced = []

    def sync(descriptor):
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    monkeypatch.setattr(os, "fsync", sync)
    write_atomically(tmp_path / "a" / "b" / "file", b"data", durable=True)
    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"data"
    folders = [str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")]
    assert [place for place in synced if not place.rpartition("/")[2].startswith(".file.")] == folders
    assert len(synced) == 4


def test_the_usual_permissions_apply(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    write_atomically(tmp_path / "file", b"")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_device_or_a_pipe_is_written_to_and_never_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        received = pool.submit(pipe.read_bytes)
        write_atomically(pipe, b"through the pipe", durable=True)
        assert received.result(timeout=10) == b"through the pipe"
    assert stat.S_ISFIFO(pipe.stat().st_mode), "a rename would have put a plain file in its place"


def test_a_link_to_a_file_is_refused_and_left(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(UnsafePath, match=f"link is a symbolic link: name what it leads to, {tmp_path / 'file'}"):
        write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_link_to_a_device_is_written_through(tmp_path):
    (tmp_path / "link").symlink_to("/dev/null")
    write_atomically(tmp_path / "link", b"gone")
    assert (tmp_path / "link").is_symlink()
