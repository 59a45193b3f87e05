"""The study that `orch.sweep` returns: frames, figure and text, from a store that has some of its results."""

import sys

import matplotlib
import pandas
import pytest

from orch.core.errors import OrchError, StoreReadOnly
from orch.notebook.sweep import define
from orch.store import Store, trial_row
from orch.sweeps.result import Result, StopReason
from tests.finished_trials import FINISHED, finish
from tests.store.attempts import write_attempt

matplotlib.use("Agg")


@pytest.fixture
def study(tmp_path):
    """A study of which all but one trial of the LSTM on sums modulo 3 has finished; that one has failed."""
    made = define(
        models=["rnn", "lstm"],
        tasks=[{"name": "modular_addition", "modulus": 2}, {"name": "modular_addition", "modulus": 3}],
        learning_rates=(1e-2, 1e-3),
        seeds=2,
        test_length=50,
        store=tmp_path / "runs",
        name="mine",
    )
    trials = [planned.trial for planned in made.plan().trials]
    *others, last = sorted(trials, key=lambda each: (each.model.name == "lstm", each.task.modulus))
    finish(made.store, others, accuracy=lambda trial: 0.9 - 0.1 * trial.init_seed - 10 * trial.learning_rate)
    write_attempt(made.store, "one", "start", 0, trial_id=last.id)
    write_attempt(made.store, "one", "end", 1, outcome="failed", trial_id=last.id)
    return made


def test_results_have_a_row_for_each_model_and_task_with_the_chosen_rate(study):
    frame = study.results()
    assert list(frame["model"]) == ["lstm", "lstm", "rnn", "rnn"]
    assert sorted(frame["modulus"]) == [2, 2, 3, 3]
    assert set(frame["chosen_rate"]) == {1e-3}
    assert frame["best"].to_list() == pytest.approx([0.89] * 4)
    complete = frame[frame["done"] == 4]
    assert complete["mean"].to_list() == pytest.approx([0.84] * 3)
    assert list(complete["seeds"]) == [2] * 3


def test_trials_have_a_row_for_each_finished_trial_and_no_empty_column(study):
    frame = study.trials()
    assert len(frame) == 15
    assert not frame.isna().all().any()
    assert list(frame)[:4] == ["trial_id", "model", "task", "learning_rate"]


def test_the_text_says_what_is_left_and_shows_rates_as_they_were_written(study):
    assert repr(study).startswith(f"mine on {study.store.location}: 15 of 16 trials done, 1 failed")
    assert " 0.001 " in repr(study)
    assert "<td>0.001</td>" in study._repr_html_()
    assert "lstm" in study._repr_html_()


def test_the_text_has_the_columns_of_orch_results_and_fits_a_screen(study):
    header = repr(study).splitlines()[1]
    assert [name for name in ("best", "mean ± sd", "seeds that learn") if name not in header] == []
    assert "seeds_measured" not in header
    assert max(map(len, repr(study).splitlines()[1:])) <= 160


def test_a_query_sees_the_trials_of_the_study_and_no_others(study):
    others = define(
        models=["rnn"], tasks=["dihedral"], learning_rates=1e-2, seeds=1, store=study.store.location, name="others"
    )
    finish(others.store, [planned.trial for planned in others.plan().trials])
    counted = study.query("SELECT task, count(*) AS trials, max(ood_accuracy) AS best FROM trials GROUP BY ALL")
    assert counted[["task", "trials"]].to_dict("records") == [{"task": "modular_addition", "trials": 15}]
    assert len(study.query("SELECT * FROM plan")) == 16
    assert set(study.query("SELECT task FROM cells")["task"]) == {"modular_addition"}
    assert set(study.query("SELECT note FROM trials JOIN notes USING (model)", notes=_notes())["note"]) == {"ours"}


def _notes():
    return pandas.DataFrame({"model": ["rnn"], "note": ["ours"]})


def test_failures_are_those_of_the_study(study):
    write_attempt(study.store, "other", "end", 2, outcome="failed", trial_id="of another study")
    (row,) = study.failures().to_dict("records")
    assert (row["trials"], row["outcome"]) == (1, "failed")


def test_the_figure_draws_the_mean_of_the_chosen_rate_at_the_tested_lengths(study):
    axes = study.figure()
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert {"rnn, modulus 2", "rnn, modulus 3", "lstm, modulus 2"} <= lines.keys()
    assert list(lines["rnn, modulus 2"].get_xdata()) == [10, 20, 50]
    assert list(lines["rnn, modulus 2"].get_ydata()) == pytest.approx([0.84] * 3)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["10", "20", "50"]
    matplotlib.pyplot.close("all")


def test_the_figure_draws_what_a_diverged_trial_lacks_as_chance(tmp_path):
    asked = {"models": ["rnn"], "tasks": ["modular_addition"], "learning_rates": 1e-3, "seeds": 1, "test_length": 20}
    made = define(**asked, store=tmp_path / "runs", name="mine")
    (planned,) = made.plan().trials
    scores = {10: 0.5, 20: float("nan")}
    result = Result(planned.trial, StopReason.DIVERGED, 10, 1.0, (), scores, scores, parameters={})
    made.store.write("trials", [trial_row(result, {"attempt_id": "one", "device": "cpu", "finished_at": FINISHED})])
    (line,) = (line for line in made.figure().get_lines() if line.get_label() == "rnn")
    assert list(line.get_ydata()) == [0.5, 0.0]
    matplotlib.pyplot.close("all")


def test_a_study_on_the_results_that_ship_is_refused_before_ray_starts():
    made = define(models=["rnn"], tasks=["modular_addition"], store="bundled", name="mine")
    with pytest.raises(StoreReadOnly):
        made.resume()
    assert "ray" not in sys.modules or not sys.modules["ray"].is_initialized()


def test_a_study_without_results_can_be_shown_and_has_nothing_to_draw(tmp_path):
    made = define(models=["rnn"], tasks=["modular_addition"], store=tmp_path / "runs", name="mine")
    assert "0 of 4 trials done, study.resume() continues" in repr(made)
    with pytest.raises(OrchError, match="no results"):
        made.trials()
    write_attempt(Store.open(tmp_path / "runs"), "one", "start", 0)
    assert made.trials().empty
    with pytest.raises(OrchError, match="no trial has finished, so there is nothing to draw"):
        made.figure()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"name": "main"}, "there is a built-in sweep main: choose another name"),
        ({"scale": "huge"}, "there is no scale 'huge'"),
        ({"steps": 0}, "steps 0 is not enough: use 1 or more"),
        ({"tasks": ["modular_additon"]}, "there is no task 'modular_additon': did you mean 'modular_addition'?"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(tmp_path, given, problem):
    asked = {"models": ["rnn"], "tasks": ["modular_addition"], "store": tmp_path / "runs", "name": "mine"} | given
    with pytest.raises(OrchError) as error:
        define(**asked)
    assert problem in str(error.value)
    assert not (tmp_path / "runs").exists()
