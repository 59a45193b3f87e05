"""Crash points are complete: one after every step that changes a store, each listed, and each survived."""

import json
import os
import re
import time
from pathlib import Path

import pytest

from orch.store import Store, StoreWarning
from orch.store.crash_points import CRASH_POINTS
from orch.store.local_files import ABANDONED_SECONDS
from orch.store.table_reader import TableReader
from tests.store.example import write_example
from tests.store.processes import start

ROOT = Path(__file__).parents[2]
MODULES = ("local_files", "store", "compaction")
PAGE = ROOT / "docs" / "integrity.md"


def everything_a_store_does(root):
    """Write, replace and delete files of every kind, merge parts, and clean up after a damaged and a dead writer."""
    store = Store.open(root)
    for seed in range(2):
        write_example(store, seed, minute=seed)
    write_example(store, seed=0, attempt="later", minute=9)
    store.put_checkpoint("t", b"old")
    store.put_checkpoint("t", b"new")
    store.put_weights("t", b"weights")
    for path in ("drivers/d.json", "sweeps/s.json"):
        store.put_json(path, {"a": 1})
        store.delete(path)
    store.delete_checkpoint("t")
    store.delete("weights/t.safetensors")
    damaged = Path(root, "withdrawn", "0", "damaged.parquet")
    dead = Path(root, "logs", ".dead.0123abcd")
    for path in (damaged, dead):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"damaged")
    os.utime(dead, (time.time() - 2 * ABANDONED_SECONDS,) * 2)
    with pytest.warns(StoreWarning, match="is damaged"):
        store.read("withdrawn")
    store.compact(min_parts=2)


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """Return what a store does, one after the other: names of crash points, and changes to its folder."""
    found: list[str] = []

    def noted(name):
        real = getattr(os, name)

        def change(path, *arguments, **options):
            inside = str(path).startswith(str(tmp_path)) and "damaged.parquet" not in str(path).split("/0/")[-1:]
            if inside and (name != "open" or arguments[0] & os.O_CREAT):
                found.append(f"{name} {path}")
            return real(path, *arguments, **options)

        return change

    with monkeypatch.context() as patch:
        for module in MODULES:
            patch.setattr(f"orch.store.{module}.crash_point", found.append)
        for name in ("open", "replace", "unlink", "mkdir"):
            patch.setattr(os, name, noted(name))
        # Parts are deleted by several threads at once, whose steps would be mixed.
        patch.setattr(TableReader, "in_parallel", lambda self, function, parts: [function(part) for part in parts])
        everything_a_store_does(tmp_path / "runs")
    return found


def test_every_crash_point_that_is_listed_is_passed(steps):
    assert set(CRASH_POINTS) - set(steps) == set()


def test_a_crash_point_follows_every_change_to_the_folder_of_a_store(steps):
    made_by_the_test = ("/withdrawn", "/withdrawn/0", "/runs/logs", "/logs/.dead.0123abcd")
    for step, following in zip(steps, [*steps[1:], ""], strict=True):
        failed = step.startswith("open ") and following.startswith("mkdir ")  # its folder was missing
        if step not in CRASH_POINTS and not step.endswith(made_by_the_test) and not failed:
            assert following in CRASH_POINTS, f"a process cannot be killed between {step} and {following}"


@pytest.mark.thorough
def test_a_process_killed_at_any_crash_point_loses_nothing_it_had_acknowledged_and_can_be_repeated(tmp_path):
    output, errors = start("killed_everywhere", tmp_path).communicate()  # however long it takes
    assert not errors
    killed = json.loads(output)
    assert killed["points"] > 50, "too few crash points were passed to prove anything"
    assert killed["problems"] == []


def test_the_page_about_exactly_once_has_every_crash_point_and_no_other():
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == CRASH_POINTS
    assert len(rows) == len(CRASH_POINTS)


def test_the_page_about_exactly_once_names_tests_and_faults_that_exist():
    text = PAGE.read_text()
    tests = {
        name for path in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    faults = {path.stem.replace("_", "-") for path in (ROOT / "tests" / "chaos" / "faults").glob("*.py")}
    assert set(re.findall(r"`(test_\w+)`", text)) <= tests
    assert set(re.findall(r"fault `([a-z-]+)`", text)) <= faults
    assert len(re.findall(r"`(test_\w+)`", text)) > 5
