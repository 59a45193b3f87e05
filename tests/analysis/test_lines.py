"""Figures of lines: what is a point, what is a line, and how models are told apart."""

import dataclasses
import math
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest

from orch.analysis.figures import data_efficiency as efficiency
from orch.analysis.figures import (
    learning,
    lengths,
    profile,
    sheet,
)
from orch.analysis.figures.plotted_cell import PlottedCell
from orch.analysis.statistics import wilson
from orch.sweeps.cell import Cell
from orch.sweeps.experiments import main as main_sweep
from orch.sweeps.scales import PAPER, SMOKE
from orch.sweeps.selection import Results
from orch.sweeps.trial import Trial
from orch.tasks.modular_addition import ModularAddition
from tests.analysis.drawn import finished_rows, plotted, visible_texts
from tests.analysis.invented import invented_row

pytestmark = pytest.mark.thorough


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class WordProblem(ModularAddition):
    """A task whose settings its author names."""

    name = "word_problem"
    group: str = "S3"

    @property
    def summary(self) -> str:
        return self.group


def test_the_chosen_learning_rate_is_drawn_with_the_range_of_its_seeds() -> None:
    [cell] = [cell for cell in main_sweep.cells(PAPER, Results.none()) if _is(cell, "bilinear", "state_machine", 3)]
    finished = {}
    for trial in cell.trials:
        assert isinstance(trial, Trial)
        score = 0.3 * trial.init_seed if trial.learning_rate == 1e-4 else 0.1
        curve = [{"length": 10, "accuracy": 1.0}, {"length": 100, "accuracy": score}]
        row = invented_row(trial.id, trial.learning_rate, trial.init_seed, length_curve=curve)
        finished[trial.id] = row
    [line] = lengths.lines(plotted([cell], finished))
    assert list(line.x) == [10, 100]
    assert list(line.mean) == pytest.approx([1, 0.3])
    assert (line.low[1], line.high[1]) == pytest.approx((0, 0.6))


def test_a_profile_has_the_share_of_seeds_that_hold_and_needs_three_seeds() -> None:
    [cell] = [cell for cell in main_sweep.cells(PAPER, Results.none()) if _is(cell, "bilinear", "state_machine", 3)]
    curves = ([1.0, 0.2], [1.0, 0.96], [0.94, 0.1])
    finished = {}
    for trial in (trial for trial in cell.trials if isinstance(trial, Trial) and trial.learning_rate == 1e-4):
        points = zip((10, 100), curves[trial.init_seed], strict=True)
        curve = [{"length": length, "accuracy": score} for length, score in points]
        finished[trial.id] = invented_row(trial.id, 1e-4, trial.init_seed, length_curve=curve)
    [line] = profile.lines(plotted([cell], finished))
    assert list(line.mean) == pytest.approx([2 / 3, 1 / 3])
    assert list(line.low) == pytest.approx([wilson(2, 3).low, wilson(1, 3).low])
    assert list(line.high) == pytest.approx([wilson(2, 3).high, wilson(1, 3).high])
    assert profile.lines(plotted([cell], dict(list(finished.items())[:2]))) == []


def test_a_length_that_was_not_measured_has_no_point() -> None:
    [cell] = [cell for cell in main_sweep.cells(SMOKE, Results.none()) if _is(cell, "rnn", "modular_addition", 2)]
    curve = [{"length": 10, "accuracy": 0.5}, {"length": 100, "accuracy": None}, {"length": 500, "accuracy": math.nan}]
    row = invented_row(cell.trial_ids[0], length_curve=curve)
    [line] = lengths.lines(plotted([cell], {row["trial_id"]: row}))
    assert (list(line.x), list(line.mean)) == ([10], [0.5])
    assert lengths.lines(plotted([cell], {row["trial_id"]: row | {"length_curve": None}})) == []


def test_lines_are_drawn_at_their_true_values_even_where_they_are_equal() -> None:
    models = [PAPER.model("lstm"), PAPER.model("rnn"), PAPER.model("transformer", layers=1)]
    cells = [PAPER.cell(PAPER.task("modular_addition", 2), model) for model in models]
    finished = finished_rows(cells)
    for row in finished.values():
        row["length_curve"] = [{"length": length, "accuracy": 1.0} for length in (10, 50, 100, 500)]
    [panel] = lengths.draw(lengths.lines(plotted(cells, finished)), "Equal").axes
    drawn = [line for line in panel.lines if len(line.get_xdata()) == 4]
    assert len(drawn) == 3
    for line in drawn:
        assert list(line.get_xdata()) == [10, 50, 100, 500]
        assert list(line.get_ydata()) == [1.0] * 4
        assert line.get_transform() == panel.transData
    assert [line.get_markevery() for line in drawn] == [[0, 3], [1], [2]], "their markers take turns"


def test_every_tested_length_is_a_tick() -> None:
    cells = [PAPER.cell(PAPER.task("modular_addition", 2), PAPER.model("lstm"))]
    finished = finished_rows(cells)
    for row in finished.values():
        row["length_curve"] = [{"length": length, "accuracy": 0.5} for length in (7, 30, 70, 140)]
    [panel] = lengths.draw(lengths.lines(plotted(cells, finished)), "Lengths").axes
    assert list(panel.get_xticks()) == [7, 30, 70, 140]
    assert [label.get_text() for label in panel.get_xticklabels()] == ["7", "30", "70", "140"]


def test_models_of_several_families_share_a_panel_while_they_can_be_told_apart() -> None:
    task = PAPER.task("modular_addition", 2)
    cells = [PAPER.cell(task, PAPER.model(name)) for name in ("bilinear", "lstm", "lru")]
    lines = lengths.lines(plotted(cells, finished_rows(cells)))
    assert len({line.family for line in lines}) == 3
    assert len(lengths.draw(lines, "Few").axes) == 1


def test_a_learning_curve_within_one_power_of_ten_has_the_first_and_the_last_step_as_ticks() -> None:
    cells = [PAPER.cell(PAPER.task("modular_addition", 2), PAPER.model("lstm"))]
    [cell] = plotted(cells, finished_rows(cells))
    steps = np.array([100.0, 200.0, 400.0])
    curve = learning.Curve(steps, steps / 1000, steps / 1000)
    losses, accuracies = learning.lines([cell], {row["trial_id"]: curve for row in cell.chosen})
    assert list(learning.sheet_of(losses, accuracies, "Short").ticks) == [100, 400]


def test_no_panel_has_more_lines_than_can_be_told_apart() -> None:
    task = PAPER.task("modular_addition", 2)
    cells = [PAPER.cell(task, PAPER.model("bilinear"), batch_size=size) for size in range(1, 20)]
    lines = lengths.lines(plotted(cells, finished_rows(cells)))
    assert len(lines) == 19
    assert [len(row) for _, row in sheet.families(lines)] == [7, 7, 5]
    figure = lengths.draw(lines, "Many")
    assert len(figure.axes) == 3
    assert all(text in {text for text, *_ in visible_texts(figure)} for text in (line.label for line in lines))


def test_a_task_with_its_own_words_has_them_over_its_columns_and_settings_of_one_modulus_are_apart() -> None:
    tasks = [WordProblem(modulus=6, group=group) for group in ("S3", "Z6")]
    cells = [PAPER.cell(task, PAPER.model("lstm")) for task in tasks]
    found = plotted(cells, finished_rows(cells))
    assert [entry.label for entry in found] == ["LSTM", "LSTM"]
    figure = lengths.draw(lengths.lines(found), "Word problem: accuracy against length")
    assert [panel.get_title() for panel in figure.axes] == ["S3", "Z6"]


def test_a_length_without_a_score_of_a_diverged_trial_counts_as_chance() -> None:
    [cell] = [cell for cell in main_sweep.cells(SMOKE, Results.none()) if _is(cell, "rnn", "modular_addition", 2)]
    curve = [{"length": 10, "accuracy": None}, {"length": 500, "accuracy": math.nan}]
    row = invented_row(cell.trial_ids[0], stop_reason="diverged", length_curve=curve)
    [line] = lengths.lines(plotted([cell], {row["trial_id"]: row}))
    assert list(line.mean) == [0, 0]


def _is(cell: Cell, model: str, task: str, modulus: int) -> bool:
    trial = cell.example
    return (trial.model.name, trial.task.name, trial.task.modulus) == (model, task, modulus)


def test_labels_of_cells_that_differ_in_one_setting_name_it() -> None:
    task, model = PAPER.task("modular_addition", 2), PAPER.model("bilinear")
    cells = [PAPER.cell(task, model, batch_size=size) for size in (32, 64)] + [PAPER.cell(task, PAPER.model("lstm"))]
    found = plotted(cells, finished_rows(cells))
    assert [entry.label for entry in found] == ["Bilinear, batch size 32", "Bilinear, batch size 64", "LSTM"]
    assert len({entry.look for entry in found}) == 3
    assert [entry.label for entry in plotted(cells[1:], finished_rows(cells))] == ["Bilinear", "LSTM"]


def test_sizes_of_training_sets_are_points_of_one_line() -> None:
    task, model = PAPER.task("modular_addition", 2), PAPER.model("bilinear")
    same = {"learning_rates": [1e-3], "min_inputs": 10}
    cells = [PAPER.cell(task, model, train_examples=size, steps=size, **same) for size in (300, 100)]
    [line] = efficiency.lines(plotted(cells, finished_rows(cells), efficiency.ALONG))
    assert list(line.x) == [100, 300]
    assert list(line.high) == pytest.approx([1 / 6, 0])


def curve_table(rows: Iterable[tuple[str, int, float | None, float]]) -> pa.Table:
    return pa.table(dict(zip(learning.COLUMNS, map(list, zip(*rows, strict=True)), strict=True)))


def test_curves_are_sorted_and_non_finite_values_are_left_out() -> None:
    rows = [
        ("b", 20, 0.5, 0.2),
        ("a", 10, 1.0, 0.1),
        ("b", 10, 2.0, 0.0),
        ("c", 10, 1.0, 0.0),
        ("b", 30, math.nan, 0.3),
    ]
    found = learning.curves_of(curve_table([*rows, ("b", 40, None, 0.3)]), ["a", "b", "d"])
    assert {name: curve.steps.tolist() for name, curve in found.items()} == {"a": [10], "b": [10, 20]}
    assert found["b"].losses.tolist() == [2, 0.5]
    assert found["b"].accuracies.tolist() == [0, 0.2]


def two_seeds() -> PlottedCell:
    cell = PAPER.cell(PAPER.task("modular_addition", 2), PAPER.model("lstm"), learning_rates=[1e-3])
    return dataclasses.replace(plotted([cell], finished_rows([cell]))[0], chosen=[{"trial_id": "a"}, {"trial_id": "b"}])


def test_a_seed_that_stopped_early_stays_where_it_was() -> None:
    rows = [("a", 10, 1.0, 0.5), ("a", 20, 0.01, 1.0), ("b", 10, 1.0, 0.0), ("b", 20, 1.0, 0.0), ("b", 30, 1.0, 0.5)]
    [loss], [accuracy] = learning.lines([two_seeds()], learning.curves_of(curve_table(rows), "ab"))
    assert list(loss.x) == [10, 20, 30]
    assert list(loss.mean) == pytest.approx([1, 0.1, 0.1])
    assert list(accuracy.mean) == pytest.approx([0.25, 0.5, 0.75])


def test_a_long_curve_is_thinned_out_but_keeps_its_ends() -> None:
    steps = range(100, 100_001, 100)
    table = curve_table((trial, step, 1 / step, 0.5) for trial in "ab" for step in steps)
    [loss], _ = learning.lines([two_seeds()], learning.curves_of(table, "ab"))
    assert 30 < len(loss.x) <= 60
    assert (loss.x[0], loss.x[-1]) == (100, 100_000)
    np.testing.assert_allclose(loss.mean, 1 / loss.x)
