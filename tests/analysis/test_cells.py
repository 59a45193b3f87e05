import json
import math

import pyarrow as pa
import pytest

from orch.analysis.aggregate import summarise
from orch.analysis.cells import REVISIONS, WITHIN, cells_schema, cells_table, problem
from orch.store import SCHEMAS, Store
from tests.analysis.finished import finish, trials


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path)


def cells(store):
    return cells_table(store.read("trials")).to_pylist()


def test_trials_that_differ_only_in_learning_rate_and_seeds_are_one_cell(store):
    ids = [finish(store, trial) for trial in trials()]
    [cell] = cells(store)
    assert (cell["model"], cell["task"], cell["modulus"], cell["width"]) == ("rnn", "modular_addition", 3, 8)
    assert set(cell["trial_ids"]) == set(ids)
    assert (cell["num_done"], cell["num_diverged"], cell["num_seeds"]) == (4, 0, 2)


@pytest.mark.parametrize(
    "other",
    [{"width": 16}, {"steps": 7}, {"curve_lengths": (10, 100)}, {"modulus": 2}, {"eval_seed": 1}, {"stop_loss": 1e-3}],
)
def test_trials_that_differ_in_anything_else_are_two_cells(store, other):
    for trial in [*trials(), *trials(**other)]:
        finish(store, trial)
    assert [cell["num_done"] for cell in cells(store)] == [4, 4]


@pytest.mark.parametrize("revision", REVISIONS)
def test_results_of_two_revisions_are_two_cells(store, revision):
    for trial in trials()[:2]:
        finish(store, trial)
    rows = store.read("trials")
    rows = rows.set_column(rows.schema.get_field_index(revision), revision, pa.array([1, 2]))
    assert cells_table(rows)[revision].to_pylist() == [1, 2]


def test_a_cell_says_what_the_one_summary_says(store):
    for place, trial in enumerate(trials()):
        finish(store, trial, ood=0.2 * place, validation=0.9, at_100=0.5 - 0.1 * place, diverged=place == 3)
    [cell] = cells(store)
    summary = summarise(store.read("trials").to_pylist())
    assert summary.scores is not None
    assert (cell["learning_rate"], cell["num_seeds"], cell["num_diverged"]) == (1e-2, 2, 1)
    for split, score in summary.scores.items():
        named = [cell[f"{split}_{name}"] for name in ("best", "best_trial", "mean", "spread")]
        assert named == [score.best, score.best_trial, score.mean, score.spread]


def test_a_trial_without_a_score_counts_as_chance_and_makes_no_nan(store):
    finish(store, trials()[0], ood=math.nan, at_100=math.nan, diverged=True)
    [cell] = cells(store)
    assert (cell["ood_best"], cell["ood_mean"], cell["ood_spread"], cell["num_diverged"]) == (0.0, 0.0, None, 1)


def test_a_model_with_variants_is_named_with_its_own(store):
    for layers in (1, 2):
        finish(store, trials("transformer", layers=layers)[0])
    assert sorted(cell["variant"] for cell in cells(store)) == ["1 layer", "2 layers"]


def test_settings_of_code_that_is_not_here_set_cells_apart(store):
    for trial in trials():
        finish(store, trial)
    rows = store.read("trials").append_column("temper", pa.array([1.0, 1.0, 2.0, math.inf]))
    found = cells_table(rows)
    assert found["temper"].to_pylist() == [1.0, 2.0, math.inf]
    assert found["num_done"].to_pylist() == [2, 1, 1]


def test_a_store_without_results_has_no_cells(store):
    found = cells_table(store.read("trials"))
    assert found.num_rows == 0
    assert found.schema.equals(cells_schema(), check_metadata=True)


def test_every_column_of_cells_is_described_and_every_setting_is_there(store):
    finish(store, trials()[0])
    schema = cells_table(store.read("trials")).schema
    assert schema.equals(cells_schema(), check_metadata=True)
    assert all((field.metadata or {}).get(b"description") for field in schema)
    config_at = SCHEMAS["trials"].names.index("config")
    assert set(SCHEMAS["trials"].names[1:config_at]) - set(WITHIN) <= set(schema.names)


def test_a_cell_has_the_share_of_seeds_that_learn_and_what_a_best_of_three_would_be(store):
    for trial in trials():
        learns = (trial.learning_rate, trial.init_seed) == (1e-3, 1)
        finish(store, trial, ood=1.0 if learns else 0.0, at_100=0.9 if trial.learning_rate == 1e-3 else 0.1)
    [cell] = cells(store)
    assert (cell["ood_seeds_learned"], cell["ood_seeds_measured"], cell["ood_share_learned"]) == (1, 2, 0.5)
    assert (cell["ood_share_low"], cell["ood_share_high"]) == pytest.approx((0.0945, 0.9055), abs=1e-4)
    assert cell["ood_best"] == 1.0
    assert cell["ood_expected_best"] == pytest.approx(1 - (3 / 4) ** 3), "one of four trials learned"
    assert (cell["ood_mean_low"], cell["ood_mean_high"]) == (0.0, 1.0)
    assert (cell["num_perfect"], cell["share_failing"]) == (2, 0.5)


def test_a_task_whose_code_is_absent_is_described_by_all_its_settings() -> None:
    config = json.dumps({"task": {"name": "walk", "modulus": 3, "size": 5}, "model": {"name": "lstm"}})
    assert problem(config) == "modulo 3, size 5"
