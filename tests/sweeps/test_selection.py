"""The choice of the best learning rate, and waiting for the results that decide it."""

import doctest
import itertools
import math

import pytest

from orch.sweeps import selection
from orch.sweeps.scales import LAPTOP, SMOKE
from orch.sweeps.selection import Results, Waiting, best_learning_rate, choose_rate, selection_length


def row(rate, at_100, validation=1.0, ood=0.0, seed=0, stop="budget", at_200=0.0, test_length=500):
    """Return a row with scores at 100, 200 and the test length."""
    scores = {100: at_100, 200: at_200, test_length: ood}
    return {
        "learning_rate": rate,
        "length_curve": [{"length": length, "accuracy": score} for length, score in scores.items()],
        "validation_accuracy": validation,
        "ood_accuracy": ood,
        "test_length": test_length,
        "test_samples": 1024,
        "init_seed": seed,
        "stop_reason": stop,
    }


def only(rate, scores, **values):
    """Return a row that was tested at exactly these lengths."""
    return row(rate, 0.0, **values) | {
        "length_curve": [{"length": length, "accuracy": score} for length, score in scores.items()]
    }


# The length at which the rate is chosen


@pytest.mark.parametrize(
    ("test_length", "lengths", "choice", "tie"),
    [
        (500, (10, 20, 50, 100, 200, 500), 100, 200),
        (400, (10, 20, 50, 100, 200, 400), 100, 200),
        (500, (100, 300, 400, 500), 100, 300),
        (120, (10, 50, 100, 120), 100, None),  # 100 is more than half of the test, and still shorter
        (100, (10, 20, 50, 100), 50, None),
        (100, (10, 20, 40, 80, 100), 40, 80),
        (60, (20, 60, 100, 200), 20, None),  # nothing longer than the test decides
        (500, (10, 500), 10, None),
        (500, (400, 500), None, None),
        (50, (50,), None, None),
    ],
)
def test_the_selection_length_is_a_fact_of_the_cell_and_never_the_test(test_length, lengths, choice, tie):
    found = selection_length(test_length, lengths)
    assert (found.choice, found.tie) == (choice, tie)
    assert found.name == ("validation" if choice is None else f"{choice} inputs")


def test_where_100_inputs_were_not_tested_the_longest_length_up_to_half_the_test_decides():
    rows = [only(1e-3, {20: 0.9, 40: 0.2, 80: 1.0}, test_length=80, ood=1.0)]
    rows += [only(1e-4, {20: 0.3, 40: 0.95, 80: 0.1}, test_length=80, ood=0.1, validation=0.5)]
    choice = choose_rate(rows)
    assert (choice.learning_rate, choice.at.name) == (1e-4, "40 inputs")


def test_without_such_a_length_validation_decides_and_the_test_does_not():
    rows = [only(1e-3, {10: 0.1}, test_length=10, ood=0.1, validation=0.9)]
    rows += [only(1e-4, {10: 1.0}, test_length=10, ood=1.0, validation=0.8)]
    choice = choose_rate(rows)
    assert (choice.learning_rate, choice.at.name) == (1e-3, "validation")


def test_a_tie_is_not_broken_by_the_test():
    rows = [only(1e-3, {100: 0.5, 200: 1.0}, test_length=200, ood=1.0)]
    rows += [only(1e-4, {100: 0.5, 200: 0.0}, test_length=200, ood=0.0)]
    assert choose_rate(rows).learning_rate == 1e-4, "the smaller rate"


def test_rows_of_different_tests_are_chosen_at_a_length_that_all_of_them_share():
    short = only(1e-3, {10: 1.0, 20: 1.0, 40: 1.0}, test_length=40)
    long = only(1e-4, {10: 1.0, 20: 1.0, 40: 1.0, 100: 1.0, 500: 1.0})
    assert choose_rate([short, long]).at.name == "20 inputs"


def test_examples_in_docstrings_hold():
    found = doctest.testmod(selection)
    assert found.attempted
    assert not found.failed


# The choice


def test_the_best_rate_has_the_highest_mean_accuracy_at_length_100_over_the_seeds():
    rows = [
        *(row(1e-3, score, seed=seed) for seed, score in enumerate((1.0, 0.1, 0.1))),
        *(row(1e-4, score, seed=seed) for seed, score in enumerate((0.5, 0.6, 0.5))),
    ]
    assert best_learning_rate(rows) == 1e-4


def test_neither_validation_nor_the_reported_length_decides():
    assert (
        best_learning_rate([row(1e-3, 0.4, validation=1.0, ood=1.0), row(1e-4, 0.5, validation=0.6, ood=0.0)]) == 1e-4
    )


def test_ties_are_broken_by_length_200_then_validation_then_the_smaller_rate():
    assert best_learning_rate([row(1e-3, 1.0, 0.9, at_200=1.0), row(1e-4, 1.0, at_200=0.9)]) == 1e-3
    assert best_learning_rate([row(1e-3, 0.5, validation=0.9), row(1e-4, 0.5, validation=0.8)]) == 1e-3
    assert best_learning_rate([row(1e-4, 0.5), row(1e-3, 0.5), row(1e-5, 0.5)]) == 1e-5


def test_rounding_breaks_no_tie():
    thirds = [row(1e-4, score, seed=seed) for seed, score in enumerate((0.1, 0.2, 0.3))]
    fifths = [row(1e-3, 0.2 + 1e-13, seed=seed) for seed in range(3)]
    assert best_learning_rate([*thirds, *fifths]) == 1e-4


def test_where_every_rate_is_at_chance_one_that_fits_in_validation_is_chosen():
    rows = [row(1e-3, 0.02, validation=0.14, at_200=0.03), row(1e-4, -0.01, validation=0.99, at_200=0.0)]
    assert best_learning_rate(rows) == 1e-4
    above_chance = [row(1e-3, 0.2, validation=0.14), row(1e-4, -0.01, validation=0.99)]
    assert best_learning_rate(above_chance) == 1e-3


def test_where_every_rate_is_at_chance_a_difference_within_noise_in_validation_decides_nothing():
    rows = [row(1e-3, 0.02, validation=0.95), row(1e-4, -0.01, validation=0.99)]
    assert best_learning_rate(rows) == 1e-3


def test_a_diverged_trial_counts_with_its_score():
    rows = [row(1e-2, 0.9, stop="diverged"), row(1e-3, 0.5)]
    assert best_learning_rate(rows) == 1e-2
    assert best_learning_rate([row(1e-2, -0.1, stop="diverged"), row(1e-3, 0.5)]) == 1e-3


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_diverged_trial_without_a_score_counts_as_chance(missing):
    assert best_learning_rate([row(1e-3, missing, stop="diverged"), row(1e-4, 0.3)]) == 1e-4
    assert best_learning_rate([row(1e-3, missing, stop="diverged"), row(1e-4, -0.3)]) == 1e-3


def test_a_diverged_trial_without_any_scores_leaves_the_length_to_the_others():
    lost = row(1e-2, None, stop="diverged", validation=None, ood=None) | {"length_curve": None}
    choice = choose_rate([lost, row(1e-3, 0.5)])
    assert (choice.learning_rate, choice.at.name) == (1e-3, "100 inputs")


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_length_that_a_trial_was_not_measured_at_decides_nothing(missing):
    rows = [row(1e-3, missing, at_200=0.9), row(1e-4, 1.0, at_200=0.5)]
    choice = choose_rate(rows)
    assert (choice.learning_rate, choice.at.name) == (1e-3, "200 inputs")


def test_the_order_of_rows_does_not_matter():
    rows = [row(1e-3, 0.3), row(1e-3, 0.7, seed=1), row(1e-4, 0.5), row(1e-4, 0.5, seed=1), row(1e-5, 0.4)]
    assert {best_learning_rate(order) for order in itertools.permutations(rows)} == {1e-4}


def cell():
    return LAPTOP.cell(LAPTOP.task("state_machine", 3), LAPTOP.model("block_diagonal", block_size=2)).trials


def results_of(trials):
    """Return results of these trials, in which smaller learning rates score better."""
    rows = {trial.id: row(trial.learning_rate, 1 - trial.learning_rate, seed=trial.init_seed) for trial in trials}
    return Results(lambda: rows)


def test_without_results_the_best_rate_is_waited_for_and_the_reason_names_the_cell():
    reason = "the best learning rate for block_diagonal (block size 2) on state_machine modulo 3"
    assert Results.none().best_learning_rate(cell()) == Waiting(reason)


@pytest.mark.parametrize("unfinished", range(4))
def test_the_best_rate_is_waited_for_until_the_last_trial_of_the_cell_is_finished(unfinished):
    trials = cell()
    assert len(trials) == 4
    some = [trial for place, trial in enumerate(trials) if place != unfinished]
    assert isinstance(results_of(some).best_learning_rate(trials), Waiting)
    assert results_of(trials).best_learning_rate(trials) == 3e-4


def test_results_of_other_trials_do_not_decide_the_best_rate():
    others = SMOKE.cell(SMOKE.task("state_machine", 3), SMOKE.model("block_diagonal", block_size=2)).trials
    assert isinstance(results_of(others).best_learning_rate(cell()), Waiting)


def test_a_cell_with_a_waiting_trial_has_no_best_rate_yet():
    trials = cell()
    waiting = LAPTOP.trial(trials[0].task, trials[0].model, learning_rate=Waiting("something"), seed=0)
    assert isinstance(results_of(trials).best_learning_rate([*trials, waiting]), Waiting)
    assert isinstance(results_of(trials).best_learning_rate([waiting]), Waiting)


def test_results_are_read_once_and_only_when_needed():
    reads = []
    trials = cell()

    def load():
        reads.append(1)
        return {}

    results = Results(load)
    assert not reads
    results.best_learning_rate(trials)
    results.best_learning_rate(trials)
    assert len(reads) == 1
