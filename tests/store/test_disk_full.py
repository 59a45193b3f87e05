import contextlib
import errno
import os
import subprocess

import pytest

from orch.core.errors import StoreFull
from orch.store import Store
from tests.store.example import ids, write_example


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system of 256 KB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("needs the right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def check_a_full_store(store, root, free):
    before = sorted(root.rglob("*"))
    with pytest.raises(StoreFull, match=f"the store at {root} is full: free space, then run orch resume"):
        write_example(store, seed=1)
    with pytest.raises(StoreFull):
        store.put_checkpoint("t", bytes(100_000))
    assert [path for path in sorted(root.rglob("*")) if path not in before and path.is_file()] == []
    assert Store.open(root).done() == ids([0])
    free()
    write_example(store, seed=1)
    assert Store.open(root).done() == ids([0, 1])


def test_a_full_disk_is_one_clear_error_and_damages_nothing(small_disk):
    store = Store.open(small_disk)
    write_example(store, seed=0)
    ballast = small_disk / "ballast"
    with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    check_a_full_store(store, small_disk, free=ballast.unlink)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_noticed_only_by_fsync_is_the_same_error(tmp_path, monkeypatch, number):
    store = Store.open(tmp_path)
    write_example(store, seed=0)

    def full(descriptor):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        check_a_full_store(store, tmp_path, free=patch.undo)
