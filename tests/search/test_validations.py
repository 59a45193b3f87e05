"""The accuracies by which points are compared while they train."""

from orch.search.objective import Objective
from orch.search.validations import at_rungs, combined

MIN = Objective(aggregate="min")


def test_seeds_are_combined_step_by_step_as_far_as_the_slowest_is():
    curves = [[(10, 0.1), (20, 0.2), (30, 0.3)], [(10, 0.5), (20, 0.0)]]
    assert combined(curves, MIN, up_to=20) == [(10, 0.1), (20, 0.0)]


def test_a_seed_that_has_ended_stays_as_it_ended():
    curves = [[(10, 0.9)], [(10, 0.5), (20, 1.0)]]
    assert combined(curves, MIN) == [(10, 0.5), (20, 0.9)]


def test_nothing_is_known_before_every_seed_was_validated():
    assert combined([[(10, 0.9)], []], MIN) == []
    assert combined([], MIN) == []


def test_a_point_is_kept_at_its_rungs_and_at_its_end():
    validations = {10: 0.1, 20: 0.2, 30: 0.3}
    assert at_rungs(validations, (15, 40), has_ended=False) == [(15, 0.2), (30, 0.3)]
    assert at_rungs(validations, (15, 40), has_ended=True) == [(15, 0.2), (40, 0.3)]
    assert at_rungs({}, (15,), has_ended=True) == []
