import os

import pytest

from orch.store import Store
from tests.store.example import ids, write_example


@pytest.mark.parametrize("merged_before", [False, True])
@pytest.mark.parametrize("moment", range(1, 7))
def test_a_listing_misses_no_part_that_is_merged_meanwhile(tmp_path, monkeypatch, merged_before, moment):
    store = Store.open(tmp_path)
    for seed in range(4):
        write_example(store, seed)
        if seed == 1 and merged_before:
            store.compact("trials", min_parts=2)
    scan, scanned = os.scandir, []

    def scan_and_merge(path):
        scanned.append(path)
        if len(scanned) == moment:
            monkeypatch.setattr(os, "scandir", scan)
            Store.open(tmp_path).compact("trials", min_parts=2)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scan_and_merge)
    assert Store.open(tmp_path).done() == ids(range(4))


def test_a_part_is_synced_before_it_is_renamed_and_its_folder_afterwards(tmp_path, monkeypatch):
    store = Store.open(tmp_path)
    write_example(store)
    events = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (events.append(("sync", os.fstat(file).st_ino)), sync(file)))
    monkeypatch.setattr(os, "replace", lambda old, new: (replace(old, new), events.append(("name", new))))
    store.write("curves", [{"trial_id": "t", "attempt_id": "a", "step": 1}])
    [name] = [path for event, path in events if event == "name"]
    assert events == [("sync", name.stat().st_ino), ("name", name), ("sync", name.parent.stat().st_ino)]


def test_new_folders_are_synced_to_disk(tmp_path, monkeypatch):
    synced, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(os.fstat(file).st_ino), sync(file)))
    Store.open(tmp_path / "new").write("curves", [{"trial_id": "t", "attempt_id": "a", "step": 1}])
    for folder in (tmp_path, tmp_path / "new", tmp_path / "new" / "curves", tmp_path / "new" / "curves" / "0"):
        assert folder.stat().st_ino in synced
