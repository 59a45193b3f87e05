"""A store for the tests of plans and estimates."""

import pytest

from orch.store import Store


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")
