"""Invented results, for tests of tables, claims and reports."""

from typing import Any

from orch.analysis.board import Board
from orch.analysis.comparison import compare
from orch.sweeps.scales import Scale


def invented_row(trial_id: str = "one", rate: float = 1e-3, seed: int = 0, **values: Any) -> dict[str, Any]:
    """Return the row of a finished trial, by default with perfect scores; `accuracy_N` is its score at N inputs."""
    at_100, at_200 = (values.pop(name, 1.0) for name in ("accuracy_100", "accuracy_200"))
    ood = values.get("ood_accuracy", 1.0)
    scores = {100: at_100, 200: at_200, 500: ood}
    return {
        "trial_id": trial_id,
        "learning_rate": rate,
        "init_seed": seed,
        "validation_accuracy": 1.0,
        "ood_accuracy": 1.0,
        "length_curve": [{"length": length, "accuracy": score} for length, score in scores.items()],
        "test_length": 500,
        "test_samples": 1024,
        "stop_reason": "budget",
        "steps_trained": 1000,
    } | values


def invented_results(scale: Scale) -> dict[str, dict[str, Any]]:
    """Return a row for each trial of a compared cell, with the published number as its score; of two, the first."""
    finished: dict[str, dict[str, Any]] = {}
    seen: set[tuple[str, str]] = set()
    for each in compare(Board(scale)):
        metric = {"validation": "validation_accuracy", "ood": "ood_accuracy"}[each.published.split]
        rates = sorted(each.learning_rates, reverse=True)  # as the scales list them
        num_seeds = len(each.trial_ids) // len(rates)
        for place, trial_id in enumerate(each.trial_ids):
            row = finished.setdefault(trial_id, invented_row(trial_id, rates[place // num_seeds], place % num_seeds))
            if (trial_id, metric) not in seen:
                seen.add((trial_id, metric))
                row[metric] = each.published.accuracy
    return finished
