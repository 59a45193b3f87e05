"""The choice of the best learning rate, and waiting for the results that decide it."""

import itertools
import math

import pytest

from orch.sweeps.scales import LAPTOP, SMOKE
from orch.sweeps.selection import Results, Waiting, best_learning_rate


def row(rate, accuracy_100, validation=1.0, ood=0.0, seed=0, stop="budget", accuracy_200=0.0):
    return {
        "learning_rate": rate,
        "accuracy_100": accuracy_100,
        "accuracy_200": accuracy_200,
        "validation_accuracy": validation,
        "ood_accuracy": ood,
        "init_seed": seed,
        "stop_reason": stop,
    }


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
    assert best_learning_rate([row(1e-3, 1.0, 0.9, accuracy_200=1.0), row(1e-4, 1.0, accuracy_200=0.9)]) == 1e-3
    assert best_learning_rate([row(1e-3, 0.5, validation=0.9), row(1e-4, 0.5, validation=0.8)]) == 1e-3
    assert best_learning_rate([row(1e-4, 0.5), row(1e-3, 0.5), row(1e-5, 0.5)]) == 1e-5


def test_rounding_breaks_no_tie():
    thirds = [row(1e-4, score, seed=seed) for seed, score in enumerate((0.1, 0.2, 0.3))]
    fifths = [row(1e-3, 0.2 + 1e-13, seed=seed) for seed in range(3)]
    assert best_learning_rate([*thirds, *fifths]) == 1e-4


def test_a_diverged_trial_counts_with_its_score():
    rows = [row(1e-2, 0.9, stop="diverged"), row(1e-3, 0.5)]
    assert best_learning_rate(rows) == 1e-2
    assert best_learning_rate([row(1e-2, -0.1, stop="diverged"), row(1e-3, 0.5)]) == 1e-3


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_missing_score_counts_as_chance(missing):
    assert best_learning_rate([row(1e-3, missing), row(1e-4, 0.1)]) == 1e-4
    assert best_learning_rate([row(1e-3, missing), row(1e-4, -0.1)]) == 1e-3


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
