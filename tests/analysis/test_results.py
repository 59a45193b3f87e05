"""`orch results`: the common aggregates, and nothing averaged away in silence."""

import csv
import io
import json
import math

import pytest
from click.testing import CliRunner

from orch.analysis import load
from orch.analysis.aggregate import summarise
from orch.analysis.results import BY, results
from orch.cli import main
from orch.core.errors import InvalidSettings
from orch.planning.plan import make_plan
from orch.running.requests import Request, record
from orch.store import Store
from orch.sweeps.expansion import expand
from orch.sweeps.scales import SMOKE
from orch.sweeps.selection import Results
from tests.analysis.finished import START, finish, trials
from tests.analysis.invented import invented_row


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")


def rows(store, **options):
    return results(load(store.location), **options).to_pylist()


def orch(*arguments, expect=0):
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == expect, result.output
    return result


def test_a_row_is_what_the_one_summary_says_of_its_trials(store):
    for place, trial in enumerate(trials()):
        finish(store, trial, ood=0.2 * place, at_100=0.5 - 0.1 * place)
    [row] = rows(store)
    score = summarise(store.read("trials").to_pylist()).scores["ood"]
    assert [row[name] for name in BY] == ["rnn", "", "modular_addition", 3]
    assert (row["best"], row["best_trial"]) == (score.best, score.best_trial)
    assert (row["chosen_rate"], row["chosen_at"]) == (1e-2, "100 inputs")
    assert (row["mean"], row["sd"], row["seeds"], row["measured"]) == (score.mean, score.spread, 2, 4)
    assert (row["cells"], row["done"], row["planned"], row["remark"]) == (1, 4, 4, "")


def test_rows_follow_the_settings_asked_for(store):
    for settings in ({"width": 8}, {"width": 16}):
        for trial in trials(**settings):
            finish(store, trial, ood=settings["width"] / 100)
    assert [(row["width"], row["best"]) for row in rows(store, by=["width"])] == [(8, 0.08), (16, 0.16)]
    assert [row["learning_rate"] for row in rows(store, by=["learning_rate"])] == [1e-3, 1e-2]
    assert [row["curve_lengths"] for row in rows(store, by=["curve_lengths"])] == [[10, 20, 50, 100, 200, 500]]


def test_a_row_that_mixes_cells_says_in_what_they_differ(store):
    for settings in ({"width": 8}, {"width": 16, "batch_size": 32}):
        for trial in trials(**settings):
            finish(store, trial)
    [row] = rows(store)
    assert (row["cells"], row["done"]) == (2, 8)
    assert row["remark"] == "mixes width, batch_size"


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("ood", 0.5),
        ("validation", 1.0),
        ("accuracy_100", 0.4),
        ("accuracy_20", 0.4),
        ("accuracy_500", 0.5),
        ("steps_trained", 200),
        ("seconds", 2),
    ],
)
def test_every_metric_has_its_best_and_its_mean(store, metric, value):
    for trial in trials():
        finish(store, trial, ood=0.5, validation=1.0, at_100=0.4)
    [row] = rows(store, metric=metric)
    assert (row["best"], row["mean"]) == (value, pytest.approx(value))


@pytest.mark.parametrize(("metric", "value"), [("horizon_90", 200), ("horizon_99", 0)])
def test_a_horizon_is_the_longest_length_that_holds_and_0_where_none_does(store, metric, value):
    for trial in trials():
        finish(store, trial, ood=0.5, at_100=0.95)
    [row] = rows(store, metric=metric)
    assert (row["best"], row["mean"], row["measured"]) == (value, value, 4)
    shown = orch("results", "--metric", metric, "--format", "latex", "--store", store.location).stdout
    assert f"up to which the accuracy is at least 0.{metric[-2:]}" in shown


def test_a_length_that_a_cell_was_not_tested_at_is_missing_and_never_zero(store):
    for trial in trials():
        finish(store, trial)
    for trial in trials("lstm", curve_lengths=(10, 30), test_length=80):
        finish(store, trial, ood=0.95, at_100=0.9)
    lstm, rnn = rows(store, metric="accuracy_100")
    assert (rnn["best"], rnn["mean"], rnn["measured"]) == (0.5, 0.5, 4)
    assert (lstm["best"], lstm["mean"], lstm["sd"], lstm["best_trial"], lstm["measured"]) == (None, None, None, None, 0)
    assert (lstm["chosen_at"], lstm["remark"]) == ("30 inputs", "accuracy_100 measured in 0 of 4 trials")
    shown = orch("results", "--metric", "accuracy_100", "--format", "table", "--store", store.location).stdout
    [line] = [line for line in shown.splitlines() if line.startswith("lstm")]
    assert " 0.00" not in line.replace(" 0.001 ", " ")
    assert line.split()[4:7] == ["–", "–", "0.001"]
    [line] = [line for line in shown.splitlines() if line.startswith("rnn")]
    assert "0.50 ± 0.00" in line


def test_a_length_that_no_trial_was_tested_at_is_one_sentence_that_names_the_lengths_there_are(store):
    finish(store, trials(curve_lengths=(10, 30), test_length=80)[0])
    message = orch("results", "--metric", "accuracy_100", "--store", store.location, expect=2).stderr
    there_are = "accuracy_10, accuracy_30, accuracy_80"
    assert message == f"error: accuracy at 100 inputs was not measured in any trial: use one of {there_are}\n"


@pytest.mark.parametrize(("kind", "heading"), [("sd", "mean ± sd"), ("se", "mean ± se"), ("ci", "mean ± 95% ci")])
def test_the_heading_names_what_stands_after_the_plus_minus_sign(store, kind, heading):
    for trial in trials():
        finish(store, trial, ood=0.2 + 0.4 * trial.init_seed)
    options = ("--store", store.location, "--spread", kind)
    table = orch("results", *options, "--format", "table").stdout.splitlines()
    assert f"  {heading}  " in table[0]
    column = {"sd": "sd", "se": "se", "ci": "ci95"}[kind]
    [piped] = csv.DictReader(io.StringIO(orch("results", *options).stdout))
    expected = {"sd": 0.08**0.5, "se": 0.2, "ci": 12.706204736 * 0.2}[kind]
    assert float(piped[column]) == pytest.approx(expected)
    assert f"0.40 ± {expected:.2f}" in table[2]


def test_as_latex_it_is_a_float_whose_caption_says_what_the_numbers_are(store):
    for trial in trials():
        finish(store, trial, ood=0.2 + 0.4 * trial.init_seed)
    text = orch("results", "--store", store.location, "--format", "latex", "--spread", "se").stdout
    assert r"modular\_addition & 3 & 4 & 0.60 & 0.55 & 0.001 & 0.40 $\pm$ 0.20 & 0 of 2 (0.00--0.66) & 2" in text
    assert r"Mean $\pm$ standard error of the mean: over the seeds of the learning rate chosen at 100" in text
    assert r"\label{tab:results}" in text
    assert r"\toprule" in text


def test_of_steps_and_seconds_the_fewest_are_best():
    finished = [invented_row(str(steps), steps_trained=steps) for steps in (300, 200)]
    score = summarise(finished, metrics={"steps": "steps_trained"}).scores["steps"]
    assert (score.best, score.best_trial, score.mean) == (200, "200", 250)


def test_diverged_trials_are_counted_in_the_remark(store):
    for place, trial in enumerate(trials()):
        finish(store, trial, ood=math.nan if place == 0 else 0.5, diverged=place == 0)
    [row] = rows(store)
    assert row["remark"] == "1 diverged"
    assert row["best"] == 0.5


@pytest.fixture
def half_finished(store):
    """A sweep of which one cell has a result, one has failed and the others are untouched."""
    where = ("model=rnn,lstm,bilinear", "modulus=2")
    request = Request(("main",), "smoke", where)
    record(store, request, make_plan(["main"], "smoke", where, store))
    wanted = [each.trial for each in expand(["main"], SMOKE, Results.none()).trials.values()]
    chosen = {(trial.model.name, trial.task.name): trial for trial in wanted if trial.task.modulus == 2}
    finish(store, chosen["rnn", "modular_addition"], ood=0.75)
    failed = chosen["lstm", "modular_addition"]
    ended = {"attempt_id": "a", "trial_id": failed.id, "event": "end", "at": START, "outcome": "failed"}
    store.write("attempts", [ended])
    return store


def test_unfinished_trials_of_a_sweep_are_reported_as_missing_or_failed(half_finished):
    shown = {(row["model"], row["task"]): row for row in rows(half_finished)}
    assert len(shown) == 9
    assert shown["rnn", "modular_addition"]["remark"] == ""
    assert shown["lstm", "modular_addition"]["remark"] == "failed: 0 of 1 trials"
    assert shown["bilinear", "state_machine"]["remark"] == "missing: 0 of 1 trials"
    assert shown["bilinear", "state_machine"]["best"] is None
    [rnn] = [row for row in rows(half_finished, by=["model"]) if row["model"] == "rnn"]
    assert (rnn["done"], rnn["planned"]) == (1, 3)
    assert rnn["remark"].startswith("partial: 1 of 3 trials; mixes task")


def test_where_narrows_what_is_done_and_what_is_missing(half_finished):
    found = rows(half_finished, where=["model=rnn", "task!=state_machine"])
    assert [(row["model"], row["task"]) for row in found] == [
        ("rnn", "modular_addition"),
        ("rnn", "modular_arithmetic"),
    ]


def test_all_invalid_options_are_reported_at_once(store):
    finish(store, trials()[0])
    with pytest.raises(InvalidSettings, match=r"did you mean 'model'.*\n.*did you mean 'width'"):
        rows(store, by=["modl", "widht"])
    assert "did you mean 'rnn'" in orch("results", "--where", "model=rn", "--store", store.location, expect=2).stderr
    assert "'steps'" in orch("results", "--metric", "steps", "--store", store.location, expect=2).stderr


def test_no_results_are_an_error_with_a_remedy(store, tmp_path):
    shown = orch("results", "--store", str(tmp_path / "none"), expect=2).stderr
    assert "run orch sweep first" in shown
    finish(store, trials()[0])
    shown = orch("results", "--where", "model=lstm", "--store", store.location, expect=2).stderr
    assert "no trial has model=lstm" in shown


def test_in_a_pipe_it_is_csv_and_for_people_fewer_columns(half_finished, tmp_path):
    location = half_finished.location
    piped = list(csv.DictReader(io.StringIO(orch("results", "--store", location).stdout)))
    assert {"best", "mean", "sd", "chosen_rate", "chosen_at", "best_trial", "planned"} <= piped[0].keys()
    assert len(json.loads(orch("results", "--store", location, "--format", "json").stdout)) == 9
    table = orch("results", "--store", location, "--format", "table", "--by", "model,task").stdout
    assert "0 of 1" in table
    assert "0.75" in table
    assert "best_trial" not in table
    assert orch("results", "--store", location, "--output", str(tmp_path / "a.md")).stdout == ""
    assert (tmp_path / "a.md").read_text().startswith("| model | task | modulus | trials |")


def test_a_sweep_shows_its_own_trials_and_what_it_still_lacks(store):
    wanted = [each.trial for each in expand(["frozen-parity"], SMOKE, Results.none()).trials.values()]
    finish(store, wanted[0])
    finish(store, trials()[0])
    assert sum(row["done"] for row in rows(store, by=["model"])) == 2
    [found] = rows(store, by=["model", "frozen"], sweeps=["frozen-parity"], scale="smoke")
    assert (found["done"], found["planned"], found["frozen"]) == (1, len(wanted), True)
    [found] = rows(store, by=["additive"], sweeps=["frozen-parity"], scale="smoke", where=["additive=none"])
    assert found["planned"] == sum(trial.model.additive == "none" for trial in wanted)
    [found] = rows(store, by=["frozen"], sweeps=["frozen-parity"], scale="laptop")
    assert (found["done"], found["best"]) == (0, None)
