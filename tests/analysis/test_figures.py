"""Every figure is drawn from whatever a store has, looks the same everywhere, and can be read."""

import dataclasses
import doctest
import itertools
import math
import re
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import matplotlib
import numpy as np
import pyarrow as pa
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from orch.analysis.angles import Rotations
from orch.analysis.board import Board
from orch.analysis.comparison import compare
from orch.analysis.figures import (
    Gallery,
    angles,
    axes,
    factors,
    figures,
    heatmap,
    hierarchy,
    learning,
    lengths,
    profile,
    save,
    shade,
    sheet,
    svg_element,
)
from orch.analysis.figures import data_efficiency as efficiency
from orch.analysis.figures.plotted_cell import PlottedCell, plotted_cells
from orch.analysis.figures.saving import to_bytes
from orch.analysis.figures.style import TEXT_SIZE, distinct_looks
from orch.analysis.published import OOD
from orch.analysis.statistics import wilson
from orch.core.errors import UnknownName
from orch.models import REGISTRY, ModelConfig
from orch.store import Store, StoreWarning, curve_rows, trial_row
from orch.store.bundled import BUNDLED
from orch.sweeps.cell import Cell
from orch.sweeps.experiments import main as main_sweep
from orch.sweeps.registry import SWEEPS
from orch.sweeps.result import CurvePoint, Result, StopReason
from orch.sweeps.scales import LAPTOP, PAPER, SMOKE, Scale
from orch.sweeps.selection import Results, Row
from orch.sweeps.trial import Trial
from orch.tasks.modular_addition import ModularAddition
from orch.training.checkpoints import model_bytes
from orch.training.train import train
from tests.analysis.invented import invented_row

pytestmark = pytest.mark.thorough

SWEEPS_WITH_FIGURES = ("main", "param-matched", "dihedral", "factors", "data-efficiency", "angles")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class WordProblem(ModularAddition):
    """A task whose settings its author names."""

    name = "word_problem"
    group: str = "S3"

    @property
    def summary(self) -> str:
        return self.group


DOCS = Path(__file__).parents[2] / "docs"


def invented_result(trial: Trial) -> Result:
    """Return an invented result whose accuracy falls with the length."""
    scores = {length: 1 / (1 + length / 500 / trial.task.modulus) for length in trial.tested_lengths}
    steps = (trial.steps // 2, trial.steps)
    curve = tuple(CurvePoint(step, 1 / step, 1 / step, 1 - 1 / step, 0.1) for step in steps)
    return Result(trial, StopReason.BUDGET, trial.steps, 1.0, curve, scores, dict.fromkeys(scores, 0.0), {})


def write(store: Store, results: Iterable[Result]) -> None:
    attempts = {f"attempt {number}": result for number, result in enumerate(results)}
    store.write("curves", [row for attempt, result in attempts.items() for row in curve_rows(result, attempt)])
    store.write("trials", [trial_row(result, {"attempt_id": attempt}) for attempt, result in attempts.items()])


def trials_of(sweep: str, scale: Scale, store: Store) -> list[Trial]:
    cells = Board.read(store, scale).cells(sweep)
    return [trial for each in cells for trial in each.cell.trials if isinstance(trial, Trial)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store with all sweeps at smoke scale; the rotation model is trained, because its weights are drawn."""
    store = Store.open(tmp_path_factory.mktemp("figures") / "runs")
    for sweep in SWEEPS_WITH_FIGURES:
        done = store.done() if store.exists() else set()
        trials = [trial for trial in trials_of(sweep, SMOKE, store) if trial.id not in done]
        write(store, map(train if sweep == "angles" else invented_result, trials))
    for trial in trials_of("angles", SMOKE, store):
        store.put_weights(trial.id, model_bytes(train(trial)))
    return store


@pytest.fixture(scope="module")
def gallery(store: Store) -> Gallery:
    return figures(Board.read(store, SMOKE), SWEEPS_WITH_FIGURES)


def finished_rows(cells: Iterable[Cell]) -> dict[str, Row]:
    """Return a row for each trial of these cells, with scores that differ by cell and seed."""
    found = {}
    for number, cell in enumerate(cells):
        for trial in cell.trials:
            assert isinstance(trial, Trial)
            scores = dict.fromkeys(trial.tested_lengths, number % 7 / 6 * 10 / (10 + trial.init_seed))
            curve = [{"length": length, "accuracy": score} for length, score in scores.items()]
            found[trial.id] = invented_row(
                trial.id, trial.learning_rate, trial.init_seed, ood_accuracy=scores[500], length_curve=curve
            )
    return found


def plotted(cells: Iterable[Cell], finished: Mapping[str, Row], along: Iterable[str] = ()) -> list[PlottedCell]:
    return plotted_cells(map(Board(PAPER, finished).join, cells), along)


def paper_figures() -> Iterator[tuple[str, Figure]]:
    """Yield each kind of figure with as many models and moduli as the paper has."""
    cells = list(main_sweep.cells(PAPER, Results.none()))
    finished = finished_rows(cells)
    of_addition = [entry for entry in plotted(cells, finished) if entry.task.name == "modular_addition"]
    yield "lengths", lengths.draw(lengths.lines(of_addition), "Modular addition: accuracy against length")
    chosen = [row["trial_id"] for entry in of_addition for row in entry.chosen]
    losses = np.geomspace(3, 1e-5, 8)
    curves = {trial_id: learning.Curve(np.geomspace(100, 1e5, 8), losses, 1 - losses / 3) for trial_id in chosen}
    yield "learning", learning.draw(*learning.lines(of_addition, curves), "Modular addition: learning curves")
    comparisons = [each for each in compare(Board(PAPER, finished), ["main"]) if each.published.split == OOD]
    yield "heatmap", heatmap.draw(comparisons, "Table 1")
    halves = compare(Board(PAPER, dict(list(finished.items())[::4])), ["main"])
    unfinished = [each for each in halves if each.published.split == OOD]
    yield "hierarchy", hierarchy.draw(unfinished, "Which model learns what", PAPER.name)
    results = Results(lambda: finished)
    sized = list(SWEEPS["data-efficiency"].cells(PAPER, results))
    points = efficiency.lines(plotted(sized, finished_rows(sized), efficiency.ALONG))
    yield "data efficiency", efficiency.draw(points, "Accuracy at 500 inputs")
    published = factors.published_reaches()
    yield "factors", factors.draw(published[:5], published, (2, 3, 5), "Factors")
    turns = 2 * np.pi / 10 * np.outer(np.arange(10), np.arange(-10, 10))
    yield "angles", angles.draw(Rotations(turns, turns[1] / 0.6283, np.linspace(2, 1, 20)), "Angles")


@pytest.fixture(scope="module")
def drawn() -> dict[str, Figure]:
    return dict(paper_figures())


def visible_texts(figure: Figure) -> list[tuple[str, Text, tuple[float, float, float, float]]]:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    without_axes = [axes for axes in figure.axes if not axes.axison]
    not_drawn = [label for axes in without_axes for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    found = []
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if text not in not_drawn and text.get_visible() and text.get_text().strip():
            found.append((text.get_text(), text, text.get_window_extent(canvas.get_renderer()).extents))
    return found


# Which figures are drawn


def test_a_store_with_all_sweeps_has_every_figure(gallery: Gallery) -> None:
    tasks = ("modular_addition", "state_machine", "modular_arithmetic")
    expected = {"angles", "data-efficiency", "factors", "hierarchy", "heatmap-main-ood", "heatmap-main-validation"}
    expected |= {f"{kind}-main-{task}" for kind in ("lengths", "learning") for task in tasks}
    expected |= {f"lengths-param-matched-{task}" for task in tasks} | {"lengths-dihedral-dihedral"}
    assert {drawing.name for drawing in gallery.drawings} == expected
    assert gallery.left_out == {}
    assert all(drawing.title and drawing.caption and "{" not in drawing.caption for drawing in gallery.drawings)


def test_an_empty_store_has_no_figure_and_says_why(tmp_path: Path) -> None:
    found = figures(Board.read(Store.open(tmp_path / "none"), SMOKE), SWEEPS_WITH_FIGURES)
    assert found.drawings == []
    assert found.left_out["learning-main"] == "no trial of main is finished at smoke scale"
    assert len(found.left_out) == 12


def test_a_single_finished_trial_is_enough_for_a_figure(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    write(store, [invented_result(trials_of("main", SMOKE, store)[0])])
    found = figures(Board.read(store, SMOKE), ["main", "angles"])
    assert {"lengths-main-modular_addition", "learning-main-modular_addition", "heatmap-main-ood"} < {
        drawing.name for drawing in found.drawings
    }
    assert found.left_out == {"angles": "no trial of angles is finished at smoke scale"}
    for drawing in found.drawings:
        assert to_bytes(drawing.figure, "png")


def test_without_weights_or_with_damaged_ones_the_angles_are_left_out(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    [trial] = trials_of("angles", SMOKE, store)
    write(store, [invented_result(trial)])
    assert "kept its weights" in figures(Board.read(store, SMOKE), ["angles"]).left_out["angles"]
    store.put_weights(trial.id, b"nonsense")
    with pytest.warns(StoreWarning, match=f"weights/{trial.id}.safetensors .* is damaged"):
        found = figures(Board.read(store, SMOKE), ["angles"])
    assert "kept its weights" in found.left_out["angles"]


def test_the_demo_has_a_line_for_each_of_its_models(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    write(store, map(invented_result, trials_of("demo", SMOKE, store)))
    found = {drawing.name: drawing for drawing in figures(Board.read(store, SMOKE), ["demo"]).drawings}
    texts = {text for text, *_ in visible_texts(found["lengths-demo-modular_addition"].figure)}
    models = {"Bilinear", "Block 1 (real diagonal)", "Block 2", "LSTM", "Transformer (1 layer)"}
    assert {*models, "Parity", "m = 3"} <= texts


# What a figure shows


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


def test_the_published_factors_reach_as_far_as_published() -> None:
    found = {each.factors: each.num_states for each in factors.published_reaches()}
    assert found["1"] == 0
    assert found["256"] == 25
    assert found[factors.FULL] == 50


def test_our_reach_is_the_largest_machine_tracked_and_shows_whether_results_are_missing() -> None:
    planned = compare(Board(PAPER), ["factors"])
    scores = {("4", 2): 1.0, ("4", 3): 0.95, ("4", 5): 0.94, ("8", 2): 0.2}
    finished = {
        each.trial_ids[0]: invented_row(each.trial_ids[0], ood_accuracy=score)
        for each in planned
        if (score := scores.get((each.published.key.variant, each.published.key.modulus))) is not None
    }
    comparisons = compare(Board(PAPER, finished), ["factors"])
    assert factors.our_reaches(comparisons) == [factors.Reach("4", 3, False), factors.Reach("8", 0, False)]
    up_to_five = [each for each in comparisons if each.published.key.modulus <= 5]
    assert factors.our_reaches(up_to_five)[0] == factors.Reach("4", 3, True)


def test_a_heat_map_shows_ours_above_the_published_number_and_marks_what_is_missing() -> None:
    [bilinear, *_] = planned = [each for each in compare(Board(SMOKE), ["main"]) if each.published.split == OOD]
    [trial_id] = bilinear.trial_ids
    finished = {trial_id: invented_row(trial_id, ood_accuracy=0.123, stop_reason="diverged")}
    shown = [each for each in compare(Board(SMOKE, finished), ["main"]) if each.published.split == OOD][:2]
    assert shown[0].published == planned[0].published
    texts = [text for text, *_ in visible_texts(heatmap.draw(shown, "Title"))]
    assert {"0.12*", "–", "1.00", "Bilinear", "Modular addition"} <= set(texts)


def tiles(scale: Scale, scores: dict[tuple[str, str], float], fewer: int = 0) -> dict[str, hierarchy.Tile]:
    """Return the tiles of parity by row, from these scores of models and variants with `fewer` trials than planned."""
    finished = {
        trial_id: invented_row(trial_id, ood_accuracy=scores[each.published.key.model, each.published.key.variant])
        for each in compare(Board(scale), ["main"])
        if (each.published.key.model, each.published.key.variant) in scores
        for trial_id in each.trial_ids[fewer:]
    }
    compared = [each for each in compare(Board(scale, finished), ["main"]) if each.published.split == OOD]
    found = hierarchy.tiles(compared)
    assert {modulus for *_, modulus in found} == {2, 3, 5}
    return {row: tile for (row, task, modulus), tile in found.items() if (task, modulus) == ("modular_addition", 2)}


def test_the_hierarchy_has_a_row_for_each_model_even_without_results() -> None:
    found = tiles(PAPER, {("rotation", ""): 0.25, ("mamba", "1"): 0.5})
    assert len(found) == 11
    assert found["Rotation"] == hierarchy.Tile(0.25, 1.0, True)
    assert found["Transformer"] == hierarchy.Tile(None, 0.04, False)
    assert found["Mamba"] == hierarchy.Tile(0.5, 0.0, False), "deeper ones have no results"


def test_the_hierarchy_marks_what_more_trials_might_change() -> None:
    found = tiles(PAPER, {("bilinear", ""): 0.95, ("factored", ""): 0.94}, fewer=1)
    assert found["Bilinear"].conclusive
    assert not found["Factored"].conclusive
    assert tiles(PAPER, {("factored", ""): 0.94})["Factored"].conclusive


def test_the_hierarchy_in_the_readme_is_drawn_from_the_bundled_results(tmp_path: Path) -> None:
    [drawing] = [
        each for each in figures(Board.read(Store.open(BUNDLED), LAPTOP), ["main"]).drawings if each.name == "hierarchy"
    ]
    save(drawing.figure, tmp_path / "hierarchy.svg")
    texts = [re.findall("<!-- (.*?) -->", (folder / "hierarchy.svg").read_text()) for folder in (DOCS, tmp_path)]
    assert len(texts[1]) > 100
    assert texts[0] == texts[1], "README.md has the command that draws it again"


# How a figure looks


@pytest.mark.parametrize(
    "name", ["lengths", "learning", "heatmap", "hierarchy", "data efficiency", "factors", "angles"]
)
def test_all_text_can_be_read_in_print(drawn: dict[str, Figure], name: str) -> None:
    figure = drawn[name]
    texts = visible_texts(figure)
    assert len(texts) > 10
    assert min(text.get_fontsize() for _, text, _ in texts) >= TEXT_SIZE
    assert figure.get_figwidth() < 8.3, "wider than a page"
    width, height = figure.bbox.width, figure.bbox.height
    outside = [text for text, _, (x0, y0, x1, y1) in texts if x0 < 0 or y0 < 0 or x1 > width or y1 > height]
    assert not outside
    overlapping = [
        (one, other)
        for (one, _, a), (other, _, b) in itertools.combinations(texts, 2)
        if min(a[2], b[2]) - max(a[0], b[0]) > 1 and min(a[3], b[3]) - max(a[1], b[1]) > 1
    ]
    assert not overlapping


def test_models_can_be_distinguished_without_colour() -> None:
    planned = list(main_sweep.cells(PAPER, Results.none()))
    look_of = {entry.label: entry.look for entry in plotted(planned, finished_rows(planned))}
    assert len(look_of) == 15
    assert len({(look.marker, str(look.line), look.filled) for look in look_of.values()}) == 15
    assert len({look.colour for look in look_of.values()}) == 15


def test_a_model_has_the_same_look_in_every_sweep_and_user_models_have_distinct_looks() -> None:
    bilinear, lstm = (REGISTRY[name].look_of() for name in ("bilinear", "lstm"))
    found = distinct_looks({"Bilinear": bilinear, "Mine": ModelConfig.look_of(), "Yours": ModelConfig.look_of("wide")})
    assert found["Bilinear"] == distinct_looks({"LSTM": lstm, "Bilinear": bilinear})["Bilinear"] == bilinear
    assert len(set(found.values())) == 3


def test_a_figure_is_the_same_whatever_the_users_settings() -> None:
    turns = Rotations(np.ones((3, 2)), np.ones(2), np.ones(2))
    before = to_bytes(angles.draw(turns, "Angles"), "svg")
    with matplotlib.rc_context({"font.size": 20, "svg.fonttype": "none", "savefig.dpi": 30, "lines.color": "red"}):
        assert to_bytes(angles.draw(turns, "Angles"), "svg") == before
        assert matplotlib.rcParams["font.size"] == 20, "the settings are restored"
    assert b"date" not in before


def test_figures_can_be_drawn_in_several_threads_at_once(store: Store) -> None:
    expected = [
        to_bytes(drawing.figure, "svg")
        for drawing in figures(Board.read(store, SMOKE), ["dihedral", "factors"]).drawings
    ]
    found: list[list[bytes]] = []

    def draw() -> None:
        drawings = figures(Board.read(store, SMOKE), ["dihedral", "factors"]).drawings
        found.append([to_bytes(drawing.figure, "svg") for drawing in drawings])

    threads = [threading.Thread(target=draw) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 3


def test_a_name_may_contain_any_character() -> None:
    task = PAPER.task("modular_addition", 2)
    cells = [PAPER.cell(task, PAPER.model("lstm"), reading="$<script>--> {x}")]
    figure = lengths.draw(lengths.lines(plotted(cells, finished_rows(cells))), "$1 & <b>")
    root = ElementTree.fromstring(svg_element(figure, "one", "$1 & <b>"))
    assert not [node for node in root.iter() if "script" in str(node.tag)]


@pytest.mark.parametrize("module", [axes, shade], ids=lambda module: module.__name__)
def test_examples_in_docstrings_hold(module: ModuleType) -> None:
    results = doctest.testmod(module)
    assert results.attempted
    assert not results.failed


# Files


def test_figures_are_saved_by_the_ending_of_their_name(gallery: Gallery, tmp_path: Path) -> None:
    figure = gallery.drawings[0].figure
    save(figure, tmp_path / "one.svg")
    save(figure, tmp_path / "one.png")
    save(figure, tmp_path / "one.pdf")
    assert (tmp_path / "one.svg").read_text().startswith("<?xml")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "one.pdf").read_bytes().startswith(b"%PDF")
    assert to_bytes(figure, "pdf") == to_bytes(figure, "pdf"), "without the time at which it was made"
    with pytest.raises(UnknownName, match="there are: pdf, png, svg"):
        save(figure, tmp_path / "one.doc")


def test_ids_of_figures_within_one_page_are_distinct(gallery: Gallery) -> None:
    elements = [svg_element(each.figure, each.name, 'A "title" <script>') for each in gallery.drawings[:4]]
    ids: set[str] = set()
    for element in elements:
        root = ElementTree.fromstring(element)
        assert root.get("aria-label") == 'A "title" <script>'
        own = {node.get("id") for node in root.iter()} - {None}
        used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', element))
        assert used
        assert used <= own
        assert not ids & own
        ids |= {name for name in own if name}


def test_drawing_imports_neither_torch_nor_ray_nor_pyplot(store: Store, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from orch.analysis.board import Board\n"
        "from orch.analysis.figures import figures, save\n"
        "from orch.sweeps.scales import SMOKE\n"
        "from orch.store import Store\n"
        "assert 'matplotlib' not in sys.modules\n"
        f"for drawing in figures(Board.read(Store.open({store.uri!r}), SMOKE), ['angles', 'factors']).drawings:\n"
        f"    save(drawing.figure, {str(tmp_path)!r} + '/' + drawing.name + '.svg')\n"
        "assert not {'torch', 'ray', 'matplotlib.pyplot'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
    again = figures(Board.read(store, SMOKE), ["angles", "factors"]).drawings
    assert [(tmp_path / f"{each.name}.svg").read_bytes() for each in again] == [
        to_bytes(each.figure, "svg") for each in again
    ]
