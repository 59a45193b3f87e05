"""The paper's numbers as data."""

from collections import Counter

import pytest

from orch.analysis.board import Board
from orch.analysis.comparison import compare
from orch.analysis.published import OOD, TABLES, VALIDATION, published_cells
from orch.sweeps.registry import SWEEPS
from orch.sweeps.scales import PAPER

SIZES = {
    "main": 540,
    "param_matched": 288,
    "dihedral": 96,
    "factors": 144,
    "additive": 120,
    "additive_summary": 30,
    "frozen_parity": 24,
}


def test_all_1242_published_numbers_are_there():
    assert Counter(number.table for number in published_cells()) == SIZES
    assert len(published_cells()) == 1242
    assert {name: len(published_cells(name)) for name in TABLES} == SIZES


def test_no_table_says_the_same_thing_twice():
    assert len({(number.table, number.key, number.split) for number in published_cells()}) == 1242


def test_every_number_is_a_normalised_accuracy_of_a_known_split():
    assert {number.split for number in published_cells()} == {VALIDATION, OOD}
    assert all(-0.1 < number.accuracy <= 1.0 for number in published_cells())


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_table_names_its_statistic_and_its_sweep(table):
    assert "best" in table.statistic
    assert table.sweep in SWEEPS


def test_every_published_number_maps_to_planned_trials_at_paper_scale():
    counts_of = {}
    for each in compare(Board(PAPER)):
        counts_of.setdefault(each.published, []).append(len(each.trial_ids))
    assert counts_of.keys() == set(published_cells())
    for number, counts in counts_of.items():
        # Three rates and three seeds; the frozen network has two rates.
        assert set(counts) == ({6} if number.table == "frozen_parity" else {9})
        two_readings = number.key.additive != "none"
        assert len(counts) == (2 if two_readings else 1)
