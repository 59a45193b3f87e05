"""The table at the end of a small sweep shows the learning rate that selection chooses."""

import dataclasses
from pathlib import Path

from orch.analysis.length_table import length_table
from orch.store import Store
from orch.tasks.modular_addition import ModularAddition
from tests.analysis.finished import finish, trials


class OfGroups(ModularAddition):
    """Addition under a name that its author chose."""

    name = "of_groups"

    @property
    def summary(self) -> str:
        return f"S{self.modulus}"


def test_the_rate_is_chosen_at_100_inputs_and_not_by_the_test(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    for trial in trials():
        best_at_100 = trial.learning_rate == 1e-2
        finish(store, trial, ood=0.2 if best_at_100 else 1.0, at_100=0.6 if best_at_100 else 0.5, validation=0.75)
    title, [row] = length_table(store, store.done())
    assert row["task"] == "modular_addition modulo 3"
    assert (row["2–10"], row["100"], row["500"]) == ("0.75", "0.60", "0.20")
    assert title.endswith("the learning rate chosen at 100 inputs")
    assert "chosen at" not in row


def test_accuracies_are_means_over_the_seeds_of_that_rate(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    for trial in trials():
        finish(store, trial, ood=0.1 + 0.8 * trial.init_seed, at_100=0.5 if trial.learning_rate == 1e-2 else 0.4)
    _, [row] = length_table(store, store.done())
    assert (row["100"], row["500"]) == ("0.50", "0.50")


def test_only_the_trials_of_the_run_count(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    first, *_ = [finish(store, trial, ood=number / 10) for number, trial in enumerate(trials(), start=1)]
    _, [row] = length_table(store, {first})
    assert row["500"] == "0.10"
    assert length_table(store, set()).rows == []


def test_cells_of_one_model_and_task_are_rows_of_their_own_with_the_settings_that_differ(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    for trial in trials():
        finish(store, trial, ood=0.9)
        finish(store, dataclasses.replace(trial, steps=50), ood=0.3)
    _, rows = length_table(store, store.done())
    assert [(row["settings"], row["500"]) for row in rows] == [("steps 100000", "0.90"), ("steps 50", "0.30")]


def test_cells_trained_on_different_lengths_share_one_column_of_validation(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    first, *_ = trials()
    finish(store, first, ood=0.9, validation=0.75)
    finish(store, dataclasses.replace(first, min_inputs=10), ood=0.3, validation=0.5)
    _, rows = length_table(store, store.done())
    assert sorted((row["settings"], row["trained"]) for row in rows) == [
        ("min inputs 10", "0.50"),
        ("min inputs 2", "0.75"),
    ]


def test_cells_tested_at_different_lengths_show_a_dash_and_where_their_rate_was_chosen(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    for trial in trials():
        finish(store, trial, ood=0.9)
    for trial in trials("lstm", curve_lengths=(10, 30), test_length=80):
        finish(store, trial, ood=0.3, at_100=0.7)
    title, (rnn, lstm) = length_table(store, store.done())
    assert title.endswith("chosen where the column 'chosen at' says")
    assert (rnn["chosen at"], lstm["chosen at"]) == ("100 inputs", "30 inputs")
    assert list(lstm)[2:] == ["2–10", "10", "20", "30", "50", "80", "100", "200", "500", "chosen at"]
    assert (lstm["30"], lstm["80"], lstm["100"], lstm["500"]) == ("0.70", "0.30", None, None)
    assert (rnn["30"], rnn["100"]) == (None, "0.50")


def test_a_task_is_named_in_its_own_words(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "runs")
    [trial, *_] = trials()
    finish(store, trial)
    task = OfGroups(modulus=3)
    [row] = length_table(store, store.done(), {trial.id: dataclasses.replace(trial, task=task)}).rows
    assert row["task"] == "of_groups S3"
