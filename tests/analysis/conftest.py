"""A store to ask, and comparisons to lay out as tables."""

import pytest

from orch.analysis.tables import (
    lay_out,
)
from orch.store import Store
from orch.sweeps.scales import PAPER
from tests.analysis.finished import finish, trials
from tests.analysis.spoiled import spoiled


@pytest.fixture(scope="module")
def location(tmp_path_factory):
    """Two cells: one of an RNN, with a diverged trial, and one of a transformer."""
    store = Store.open(tmp_path_factory.mktemp("query") / "runs")
    for place, trial in enumerate(trials()):
        finish(store, trial, ood=0.25 * place, diverged=place == 3)
    for trial in trials("transformer", layers=2):
        finish(store, trial, ood=float("nan"))
    return store.location


@pytest.fixture(scope="module")
def comparisons():
    return spoiled(PAPER)


@pytest.fixture(scope="module")
def entries(comparisons):
    """The cells of the spoiled row's validation."""
    return lay_out("dihedral", comparisons, PAPER).sections[0].rows[0].entries[0]
