"""One number for a point, from its seeds' results."""

import math

from orch.search.objective import Objective


def row(accuracy, loss=0.1, far=0.0, stop="budget"):
    return {
        "stop_reason": stop,
        "length_curve": [{"length": 100, "accuracy": accuracy}, {"length": 500, "accuracy": far}],
        "validation_loss": loss,
        "ood_accuracy": far,
    }


def test_the_objective_is_the_metric_over_the_seeds():
    rows = [row(0.1), row(0.9), row(1.0)]
    assert Objective(aggregate="median").value(rows) == 0.9
    assert Objective(aggregate="min").value(rows) == 0.1
    assert math.isclose(Objective().value(rows) or 0, 2 / 3)


def test_the_test_is_read_beside_it_the_same_way():
    rows = [row(1.0, far=0.2), row(1.0, far=0.8), row(1.0, far=math.nan, stop="diverged")]
    assert Objective(aggregate="median").test(rows) == 0.2


def test_a_diverged_trial_without_accuracy_counts_as_chance():
    assert Objective().value([row(None, stop="diverged"), row(1.0)]) == 0.5


def test_what_was_not_measured_is_no_score():
    assert Objective().value([row(None), row(1.0)]) is None
    assert Objective("accuracy_50").value([row(1.0)]) is None
    assert Objective().test([row(1.0, far=None)]) is None
    assert Objective("validation_loss").value([row(1.0, loss=math.nan), row(1.0)]) is None


def test_losses_are_made_small_and_accuracies_large():
    assert Objective("validation_loss").better(0.1, 0.2)
    assert Objective("accuracy_100").better(0.2, 0.1)
