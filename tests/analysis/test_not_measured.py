"""No aggregate contains a number that was not measured, over random stores with missing metrics.

The expected values are computed here, plainly, from the scores that were written.
"""

import dataclasses
import math
import random
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

from orch.analysis import load
from orch.analysis.board import Board
from orch.analysis.figures import lengths
from orch.analysis.figures.plotted_cell import plotted_cells
from orch.analysis.length_table import length_table
from orch.analysis.results import results
from orch.store import Store
from orch.sweeps.cell import Cell
from orch.sweeps.scales import SMOKE
from orch.sweeps.trial import Trial, make_trial
from tests.analysis.finished import finish

MODELS = ("rnn", "lstm", "bilinear")
LENGTHS = (10, 20, 50, 100, 200, 300)
METRICS = ("ood", "validation", "seconds", "steps_trained", *(f"accuracy_{length}" for length in (*LENGTHS, 40, 500)))
MISSING = (None, math.nan)


@dataclasses.dataclass
class Written:
    """A trial and the scores that were written for it."""

    trial: Trial
    diverged: bool
    scores: dict[str, float | None]
    """What was written, by metric; a metric that is absent was not asked for."""

    def measured(self, metric: str) -> float | None:
        value = self.scores.get(metric)
        if value is not None and not math.isnan(value):
            return value
        is_accuracy = metric not in ("seconds", "steps_trained")
        return 0.0 if self.diverged and is_accuracy and metric in self.scores else None


def random_cell(rng: random.Random, model: str) -> list[Written]:
    """Return the trials of a cell with random lengths and scores, many of them missing."""
    curve = sorted(rng.sample(LENGTHS, rng.randint(0, 4)))
    first = make_trial(
        "modular_addition",
        model,
        modulus=3,
        width=8,
        test_length=rng.choice((40, 100, 200, 500)),
        curve_lengths=tuple(curve),
    )
    share_missing, coarse = rng.choice((0.0, 0.1, 0.5, 1.0)), rng.random() < 0.3

    def score() -> float | None:
        if rng.random() < share_missing:
            return rng.choice(MISSING)
        return float(rng.randint(0, 1)) if coarse else rng.uniform(-0.2, 1.0)

    written = []
    for rate in rng.sample((1e-2, 1e-3, 1e-4), rng.randint(1, 3)):
        for seed in range(rng.randint(1, 3)):
            trial = dataclasses.replace(first, learning_rate=rate, init_seed=seed, data_seed=seed)
            scores = {f"accuracy_{length}": score() for length in trial.tested_lengths}
            scores |= {"ood": scores[f"accuracy_{trial.test_length}"], "validation": score()}
            seconds = score()
            scores |= {"seconds": None if seconds is None else seconds + 1, "steps_trained": float(rng.randint(1, 9))}
            written.append(Written(trial, rng.random() < 0.2, scores))
    return written


def write(store: Store, each: Written) -> None:
    """Write the trial's scores, with null and NaN where they are missing."""

    def change(row: dict[str, Any]) -> dict[str, Any]:
        curve = [
            point | {"accuracy": each.scores[f"accuracy_{point['length']}"], "accuracy_raw": None}
            for point in row["length_curve"]
        ]
        named = {"ood_accuracy": "ood", "validation_accuracy": "validation", "seconds": "seconds"}
        values = {column: each.scores[metric] for column, metric in named.items()}
        return row | values | {"length_curve": curve, "steps_trained": int(each.scores["steps_trained"] or 0)}

    finish(store, each.trial, diverged=each.diverged, change=change)


def mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def chosen(cell: Sequence[Written]) -> tuple[str, list[Written]]:
    """Return where the best rate is chosen, and its trials: the documented rule, written out step by step."""
    trial = cell[0].trial
    shorter = [n for n in trial.tested_lengths if n < trial.test_length]
    shorter = [n for n in shorter if all(each.measured(f"accuracy_{n}") is not None for each in cell)]
    halves = [n for n in shorter if n <= trial.test_length / 2]
    choice = 100 if 100 in shorter else max(halves, default=None)
    further = [n for n in shorter if choice is not None and n > choice][:1]
    rates = sorted({each.trial.learning_rate for each in cell})

    def at(rate: float, metric: str) -> float:
        found = mean([each.measured(metric) for each in cell if each.trial.learning_rate == rate])
        return -math.inf if found is None else round(found, 9)

    noise = 3 / math.sqrt(1024)
    if choice is not None and all(at(rate, f"accuracy_{choice}") <= noise for rate in rates):
        best = max(at(rate, "validation") for rate in rates)
        rates = [rate for rate in rates if at(rate, "validation") >= best - noise]
    metrics = [f"accuracy_{n}" for n in ([] if choice is None else [choice, *further])]
    for metric in (*metrics, "validation"):
        best = max(at(rate, metric) for rate in rates)
        rates = [rate for rate in rates if at(rate, metric) == best]
    trials = [each for each in cell if each.trial.learning_rate == rates[0]]
    return "validation" if choice is None else f"{choice} inputs", trials


def expected(cell: Sequence[Written], metric: str) -> dict[str, float | None]:
    """Return best, mean, standard deviation and number of measured trials."""
    known = [value for each in cell if (value := each.measured(metric)) is not None]
    of_rate = [value for each in chosen(cell)[1] if (value := each.measured(metric)) is not None]
    best = (min if metric in ("seconds", "steps_trained") else max)(known) if known else None
    spread = stdev(of_rate) if len(of_rate) > 1 else None
    return {"best": best, "mean": mean(of_rate), "spread": spread, "measured": len(known)}


def close(found: float | None, wanted: float | None) -> bool:
    """Return whether both are missing, or both are numbers and equal."""
    if found is None or wanted is None:
        return found is None and wanted is None
    return math.isclose(found, wanted, abs_tol=1e-9)


def two_decimals(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}".replace("-0.00", "0.00")


@pytest.fixture(scope="module", params=range(20))
def written(request, tmp_path_factory) -> tuple[Store, dict[str, list[Written]]]:
    """Return a store with random cells, and what was written to it."""
    rng = random.Random(request.param)
    store = Store.open(tmp_path_factory.mktemp("runs") / str(request.param))
    cells = {model: random_cell(rng, model) for model in MODELS}
    for cell in cells.values():
        for each in cell:
            write(store, each)
    return store, cells


def test_cells_have_the_plain_aggregates_of_what_was_measured(written):
    store, cells = written
    rows = {row["model"]: row for row in load(store.location).cells.to_pylist()}
    for model, cell in cells.items():
        row = rows[model]
        where, trials = chosen(cell)
        assert (row["chosen_at"], row["learning_rate"]) == (where, trials[0].trial.learning_rate)
        for split in ("ood", "validation"):
            wanted = expected(cell, split)
            assert close(row[f"{split}_best"], wanted["best"])
            assert close(row[f"{split}_mean"], wanted["mean"])
            assert close(row[f"{split}_spread"], wanted["spread"])
            assert row[f"{split}_num_measured"] == wanted["measured"]
            assert (row[f"{split}_best_trial"] is None) == (wanted["best"] is None)


def test_results_of_every_metric_have_the_plain_aggregates_of_what_was_measured(written):
    store, cells = written
    study = load(store.location)
    tested = {length for cell in cells.values() for length in cell[0].trial.tested_lengths}
    asked = [metric for metric in METRICS if not metric.startswith("accuracy_") or int(metric[9:]) in tested]
    assert len(asked) > 4
    for metric in asked:
        rows = {row["model"]: row for row in results(study, metric=metric).to_pylist()}
        for model, cell in cells.items():
            wanted, row = expected(cell, metric), rows[model]
            assert close(row["best"], wanted["best"]), (model, metric)
            assert close(row["mean"], wanted["mean"]), (model, metric)
            assert close(row["sd"], wanted["spread"]), (model, metric)
            assert row["measured"] == wanted["measured"]


def test_the_board_has_the_same_and_claims_and_tables_read_it_there(written):
    store, cells = written
    board = Board.read(store, SMOKE)
    for cell in cells.values():
        summary = board.join(Cell(trials=[each.trial for each in cell])).summary
        for split in ("ood", "validation"):
            wanted, score = expected(cell, split), summary.scores[split]
            found = (score.best, score.mean, score.spread)
            assert all(map(close, found, (wanted["best"], wanted["mean"], wanted["spread"])))


def test_the_table_by_length_has_a_number_only_where_one_was_measured(written):
    store, cells = written
    rows = {row["model"]: row for row in length_table(store, store.done()).rows}
    for model, cell in cells.items():
        _, trials = chosen(cell)
        for length in (*LENGTHS, 40, 500):
            found = mean([each.measured(f"accuracy_{length}") for each in trials])
            assert rows[model].get(str(length)) == two_decimals(found)
        assert rows[model]["2–10"] == two_decimals(mean([each.measured("validation") for each in trials]))


def test_lines_of_figures_have_a_point_only_where_one_was_measured(written):
    store, cells = written
    board = Board.read(store, SMOKE)
    joined = [board.join(Cell(trials=[each.trial for each in cell])) for cell in cells.values()]
    drawn = {line.label: line for line in lengths.lines(plotted_cells(joined))}
    for cell in cells.values():
        _, trials = chosen(cell)
        means = {n: mean([each.measured(f"accuracy_{n}") for each in trials]) for n in cell[0].trial.tested_lengths}
        wanted = {n: value for n, value in means.items() if value is not None}
        line = drawn.pop(cell[0].trial.model.title_of(""), None)
        assert (line is None) == (not wanted)
        if line is not None:
            assert list(line.x) == list(wanted)
            np.testing.assert_allclose(line.mean, list(wanted.values()), atol=1e-12)
    assert not drawn
