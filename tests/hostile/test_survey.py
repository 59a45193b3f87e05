"""Hostile inputs of every kind end in one sentence: no traceback, no hang, and nothing else is changed."""

import subprocess
import sys

import pytest

from orch.store import Store
from tests.hostile.kinds import KINDS
from tests.hostile.plan import STORE, copy_store
from tests.hostile.store import fill
from tests.hostile.survey import plans, survey

FEW, MANY, PROCESSES = 4, 170, 3


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("ordinary") / "store"
    fill(root)
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_hostile_inputs_end_in_a_sentence(kind, store, tmp_path):
    found = survey(kind, FEW, store, tmp_path)
    assert not found, "\n\n".join(map(str, found))


def test_changed_records_have_a_right_checksum(store, tmp_path):
    """Otherwise they would all be refused for that, and what they say would never be read."""
    changed = [each for each in plans("records", 30) if each.about.split()[2] in ("value", "missing")]
    assert len(changed) > 5
    for number, each in enumerate(changed):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        copy_store(store, folder)
        each.prepare(folder)
        assert not [file for file in Store.open(folder / STORE).examine() if file.problem == "its checksum is wrong"]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_hostile_inputs_end_in_a_sentence(kind, store, tmp_path):
    found = survey(kind, MANY, store, tmp_path)
    assert not found, "\n\n".join(map(str, found))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_process_of_its_own_ends_in_a_sentence_too(kind, store, tmp_path):
    for number, plan in enumerate(plans(kind, PROCESSES)):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        copy_store(store, folder)
        plan.prepare(folder)
        done = subprocess.run(
            [sys.executable, "-m", "orch", *plan.words],
            cwd=folder,
            input=plan.given,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=600,
            check=False,
        )
        assert "Traceback (most recent call last)" not in done.stderr, (plan.words, plan.about, done.stderr)
        assert 0 <= done.returncode < 128, (plan.words, plan.about, done.returncode)
