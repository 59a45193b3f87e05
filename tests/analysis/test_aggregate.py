"""Many trials, one number."""

import doctest
import math

import pytest

from orch.analysis import spread
from orch.analysis.aggregate import COLUMNS, CellStatus, summarise
from orch.analysis.spread import Spread
from orch.store.columns import SCHEMAS
from tests.analysis.invented import invented_row


def test_what_is_needed_of_a_trial_is_in_the_store():
    assert set(COLUMNS) <= set(SCHEMAS["trials"].names)


def test_the_papers_reading_is_the_best_of_all_rates_and_seeds():
    rows = [
        invented_row("a", 1e-3, 0, ood_accuracy=0.2, validation_accuracy=0.9),
        invented_row("b", 1e-3, 1, ood_accuracy=0.4, validation_accuracy=0.7),
        invented_row("c", 1e-4, 0, ood_accuracy=0.7, validation_accuracy=0.1, accuracy_100=0.0),
    ]
    scores = summarise(rows).scores
    assert (scores["ood"].best, scores["ood"].best_trial) == (0.7, "c")
    assert (scores["validation"].best, scores["validation"].best_trial) == (0.9, "a")


def test_our_reading_is_the_mean_over_the_seeds_of_the_rate_that_does_best_at_length_100():
    rows = [
        invented_row("a", 1e-3, 0, ood_accuracy=0.2, accuracy_100=0.8),
        invented_row("b", 1e-3, 1, ood_accuracy=0.4, accuracy_100=0.8),
        invented_row("c", 1e-4, 0, ood_accuracy=1.0, accuracy_100=0.7),
    ]
    summary = summarise(rows)
    assert (summary.learning_rate, summary.num_seeds) == (1e-3, 2)
    assert summary.scores["ood"].mean == pytest.approx(0.3)
    assert summary.scores["ood"].spread == pytest.approx(math.sqrt(0.02))


def test_a_tie_between_rates_goes_to_validation_then_to_the_smaller_rate():
    assert summarise([invented_row("a", 1e-4), invented_row("b", 1e-3)]).learning_rate == 1e-4
    better = [invented_row("a", 1e-4, validation_accuracy=0.9), invented_row("b", 1e-3)]
    assert summarise(better).learning_rate == 1e-3


def test_one_seed_has_no_spread():
    summary = summarise([invented_row(ood_accuracy=0.6)])
    assert (summary.num_seeds, summary.scores["ood"].mean, summary.scores["ood"].spread) == (1, 0.6, None)


@pytest.mark.parametrize("missing", [math.nan, None])
def test_what_was_not_measured_is_absent_and_the_remark_says_in_how_many_trials(missing):
    rows = [invented_row("a", ood_accuracy=missing), invented_row("b", seed=1, ood_accuracy=0.4)]
    summary = summarise(rows)
    score = summary.scores["ood"]
    assert (score.best, score.best_trial, score.mean, score.spread, score.num_measured) == (0.4, "b", 0.4, None, 1)
    assert summary.remark == "the test measured in 1 of 2 trials"
    nothing = summarise([invented_row("a", ood_accuracy=missing)]).scores["ood"]
    assert (nothing.best, nothing.best_trial, nothing.mean, nothing.spread) == (None, None, None, None)


@pytest.mark.parametrize("missing", [math.nan, None])
def test_steps_and_seconds_that_were_not_recorded_are_not_zero(missing):
    rows = [invented_row("a", steps_trained=missing, stop_reason="diverged"), invented_row("b", steps_trained=300)]
    score = summarise(rows, metrics={"steps": "steps_trained"}).scores["steps"]
    assert (score.best, score.mean) == (300, 300)


def test_the_accuracy_at_any_tested_length_can_be_scored():
    rows = [invented_row("a", accuracy_200=0.25), invented_row("b", seed=1, accuracy_200=0.75)]
    scores = summarise(rows, metrics={"near": "accuracy_200", "none": "accuracy_50"}).scores
    assert (scores["near"].best, scores["near"].mean) == (0.75, 0.5)
    assert (scores["none"].best, scores["none"].mean, scores["none"].num_measured) == (None, None, 0)


def test_students_t_is_that_of_the_tables():
    found = doctest.testmod(spread)
    assert found.attempted
    assert not found.failed
    assert [round(spread.student_quantile(freedom), 3) for freedom in (3, 4, 29, 100)] == [3.182, 2.776, 2.045, 1.984]


@pytest.mark.parametrize(("kind", "value"), [("sd", 0.5), ("se", 0.5 / 3**0.5), ("ci", 4.302652729 * 0.5 / 3**0.5)])
def test_the_spread_is_the_one_asked_for(kind, value):
    rows = [invented_row(str(seed), seed=seed, ood_accuracy=score) for seed, score in enumerate((0.0, 0.5, 1.0))]
    assert summarise(rows, spread=Spread(kind)).scores["ood"].spread == pytest.approx(value)
    assert summarise(rows[:1], spread=Spread(kind)).scores["ood"].spread is None


@pytest.mark.parametrize("missing", [math.nan, None])
def test_a_diverged_trial_without_a_score_counts_as_chance_and_not_as_absent(missing):
    rows = [invented_row("a", ood_accuracy=missing, stop_reason="diverged"), invented_row("b", seed=1)]
    summary = summarise(rows)
    assert summary.scores["ood"].mean == 0.5
    assert (summary.scores["ood"].best, summary.scores["ood"].best_trial) == (1.0, "b")
    assert (summary.num_done, summary.num_diverged, summary.remark) == (2, 1, "1 diverged")


def test_a_trial_that_diverged_counts_as_it_scored():
    rows = [invented_row("a", ood_accuracy=0.8, stop_reason="diverged"), invented_row("b", seed=1, ood_accuracy=0.2)]
    assert summarise(rows).scores["ood"].best == 0.8


@pytest.mark.parametrize(
    ("num_done", "num_failed", "status", "remark"),
    [
        (9, 0, CellStatus.COMPLETE, ""),
        (4, 0, CellStatus.PARTIAL, "partial: 4 of 9 trials"),
        (4, 2, CellStatus.PARTIAL, "partial: 4 of 9 trials, 2 failed"),
        (0, 3, CellStatus.FAILED, "failed: 0 of 9 trials"),
        (0, 0, CellStatus.MISSING, "missing: 0 of 9 trials"),
    ],
)
def test_what_is_not_complete_says_so(num_done, num_failed, status, remark):
    summary = summarise([invented_row(str(place)) for place in range(num_done)], 9, num_failed)
    assert (summary.status, summary.remark) == (status, remark)
    assert (summary.scores is None) == (num_done == 0)


def test_a_cell_without_a_plan_is_what_it_has():
    assert summarise([invented_row()]).status is CellStatus.COMPLETE
