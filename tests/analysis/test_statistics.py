"""The statistics, against scipy and against simulations."""

import doctest
import itertools

import numpy as np
import pytest
from scipy import stats

from orch.analysis import statistics
from orch.analysis.statistics import (
    Share,
    bootstrap_mean,
    expected_best,
    length_profile,
    seeds_to_exclude,
    share_failing,
    wilson,
)

BIMODAL = (0.02, -0.05, 1.0, 0.99, 1.0, 0.4, 0.97)


def test_the_examples_in_the_formulas_hold():
    assert doctest.testmod(statistics).failed == 0


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_wilsons_interval_is_that_of_scipy(confidence):
    for of in (1, 2, 3, 5, 9, 40):
        for num in range(of + 1):
            theirs = stats.binomtest(num, of).proportion_ci(confidence, "wilson")
            assert wilson(num, of, confidence) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_the_seeds_that_settle_a_share_are_the_fewest_whose_interval_excludes_one_half():
    for num, of in ((1, 1), (3, 4), (2, 3), (0, 1), (1, 4), (4, 5)):
        needed = seeds_to_exclude(num / of)
        sizes = [size for size in range(of, 400, of) if Share(num * size // of, size).is_sure]
        assert needed is not None
        assert of * -(-needed // of) == sizes[0], "with whole seeds"
    assert Share(2, 2).more == 2
    assert (Share(4, 4).is_sure, Share(4, 4).more, Share(1, 2).more) == (True, 0, None)


@pytest.mark.parametrize("of", [1, 2, 3, 7])
def test_the_expected_best_is_the_mean_over_all_draws(of):
    draws = list(itertools.product(BIMODAL, repeat=of)) if of < 4 else None
    if draws is None:
        generator = np.random.default_rng(1)
        draws = generator.choice(BIMODAL, size=(200_000, of))
    assert expected_best(BIMODAL, of) == pytest.approx(np.max(draws, axis=1).mean(), abs=2e-3 if of > 3 else 1e-12)
    assert expected_best(BIMODAL, of, lowest=True) == pytest.approx(np.min(draws, axis=1).mean(), abs=2e-3)
    assert expected_best(BIMODAL, 8) is None, "seven trials do not say what the best of eight is"


@pytest.mark.parametrize("values", [BIMODAL, BIMODAL[:5], BIMODAL[2:5], tuple(np.linspace(0, 1, 40))])
def test_the_bootstrap_interval_of_a_mean_is_that_of_scipy(values):
    generator = np.random.default_rng(2)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=20_000, rng=generator)
    # Few values have few means, so an end may be the next mean: a step of at most the range over the number.
    step = (max(values) - min(values)) / len(values) if len(values) <= 5 else 0.03
    assert bootstrap_mean(values) == pytest.approx(tuple(theirs.confidence_interval), abs=step)
    assert bootstrap_mean(reversed(values)) == bootstrap_mean(values), "the same values have the same interval"
    assert bootstrap_mean([0.3]) is None


def test_what_was_not_measured_has_no_part_in_any_share():
    assert Share.at_least([1.0, None, 0.2], 0.95) == Share(1, 2)
    assert Share.at_least([None], 0.95) is None
    assert length_profile([{10: 1.0, 50: 0.3}, {10: 0.96}], 0.95) == {10: Share(2, 2), 50: Share(0, 1)}
    assert share_failing([(1.0, 0.1), (1.0, 0.96), (0.8, 0.1), (None, 0.1), (1.0, None)], 0.95) == Share(1, 2)
    assert share_failing([(0.5, 0.1)], 0.95) is None
