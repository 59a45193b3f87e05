"""Hostile inputs of every kind end in one sentence: no traceback, no hang, and nothing else is changed."""

import pytest

from tests.hostile.kinds import KINDS
from tests.hostile.store import fill
from tests.hostile.survey import survey

FEW, MANY = 4, 170


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("ordinary") / "store"
    fill(root)
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_hostile_inputs_end_in_a_sentence(kind, store, tmp_path):
    found = survey(kind, FEW, store, tmp_path)
    assert not found, "\n\n".join(map(str, found))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_hostile_inputs_end_in_a_sentence(kind, store, tmp_path):
    found = survey(kind, MANY, store, tmp_path)
    assert not found, "\n\n".join(map(str, found))
