"""User-defined models, tasks and settings in conditions, plans, stores and reports, also without their code."""

import json
import shutil

import pytest

from orch.analysis.length_table import length_table
from orch.core.errors import OrchError
from orch.planning.estimate import Basis
from orch.running.requests import Request, record
from orch.store import SCHEMAS, Store
from orch.sweeps.where import parse_where
from orch.usercode import name_sweeps
from tests.command_line import orch
from tests.finished_trials import finish
from tests.store.example import write_example


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")


def plan_of(files, store, *where):
    return Request.read([files.path], "smoke", where).plan(store)


def fill(files, store):
    """Write results of all trials of a sweep file, then delete the file; return the trial ids by label."""
    request = Request.read([files.path], "smoke", ())
    plan = request.plan(store)
    finish(store, [planned.trial for planned in plan.trials])
    record(store, request, plan)
    shutil.rmtree(files.folder)
    return {planned.trial.label: planned.id for planned in plan.trials}


def test_conditions_may_name_user_defined_models_tasks_and_settings(files, store):
    def chosen(*where):
        return [planned.trial.label for planned in plan_of(files, store, *where).trials]

    assert chosen("model=averaging", "task=last") == ["averaging on last modulo 3"]
    assert chosen("flavour=plain,decay=0.5,patience=0") == ["averaging on last modulo 3"]
    assert len(chosen("decay!=0.5")) == 2
    with pytest.raises(OrchError, match="there is no setting 'flavor': did you mean 'flavour'"):
        chosen("flavor=plain")
    with pytest.raises(OrchError, match="there is no setting 'flavour'"):
        parse_where(["flavour=plain"])


def test_a_user_defined_setting_with_a_built_in_name_may_have_other_values(files, store):
    files.edit('flavour: str = setting("plain"', 'additive: str = setting("plain"')
    assert len(plan_of(files, store, "additive=plain").trials) == 2


def test_a_plan_counts_finished_trials_and_estimates_from_them(files, store):
    trials = [planned.trial for planned in plan_of(files, store).trials]
    assert all(planned.basis == Basis.ASSUMED for planned in plan_of(files, store).trials)
    finish(store, trials[:1])
    plan = plan_of(files, store)
    assert plan.counts["done"] == 1
    assert [planned.basis for planned in plan.trials if planned.left] == [Basis.ASSUMED, Basis.SCALED, Basis.ASSUMED]


def test_variants_that_differ_in_a_user_defined_setting_are_estimated_separately(files, store):
    path = files.edit(
        'yield scale.cell(task, scale.model("rnn"))', "yield scale.cell(task, Averaging(width=8, decay=0.25))"
    )
    trials = [planned.trial for planned in Request.read([path], "laptop", ["task=last"]).plan(store).trials]
    slow, fast = (next(trial for trial in trials if trial.model.decay == decay) for decay in (0.5, 0.25))
    finish(store, [slow], seconds=100.0)
    finish(store, [fast], seconds=1.0)
    seconds = {
        planned.trial.model.decay: planned.seconds
        for planned in Request.read([path], "laptop", ["task=last"]).plan(store).trials
        if planned.left
    }
    assert seconds == {0.5: pytest.approx(100.0), 0.25: pytest.approx(1.0)}


def test_finished_trials_of_an_earlier_version_of_a_model_are_not_used_for_estimates(files, store):
    finish(store, [planned.trial for planned in plan_of(files, store).trials])
    files.edit(
        "    def shapes(self, vocabulary):\n", "    def shapes(self, vocabulary):\n        assert self.decay == 0.25\n"
    )
    files.edit("Averaging(width=8)", "Averaging(width=8, decay=0.25)")
    plan = plan_of(files, store)
    assert plan.counts["done"] == 2, "the trials of the built-in model are unchanged"
    assert {planned.basis for planned in plan.trials if planned.trial.model.name == "averaging"} == {Basis.ASSUMED}


def test_user_defined_settings_are_columns_with_and_without_the_code(files, store):
    before = list(SCHEMAS["trials"].names)
    write_example(store)
    fill(files, store)
    table = store.read("trials")
    assert table.column_names == [*before, "decay", "flavour", "patience"]
    assert store.compact(min_parts=2).written
    again = Store.open(store.uri).read("trials")
    assert sorted(map(str, again["flavour"].to_pylist())) == ["None", "None", "None", "plain", "plain"]


def test_a_store_that_was_read_already_gets_the_user_defined_columns_too(files, store):
    write_example(store)
    assert "flavour" not in store.read("trials").column_names
    request = Request.read([files.path], "smoke", ())
    assert store.with_settings_of(request.catalogue).read("trials", ["flavour"])["flavour"].to_pylist() == [None]
    with pytest.raises(OrchError, match="there is no column of trials 'flavour'"):
        store.read("trials", ["flavour"])
    assert request.plan(store).counts["to_do"] == 4


def test_the_column_of_a_user_defined_setting_has_its_description(files, store):
    catalogue = name_sweeps([files.path]).catalogue
    trials = store.with_settings_of(catalogue).read("trials")
    assert trials.schema.field("decay").metadata[b"description"] == b"weight of what was before"


def test_a_store_with_trials_of_user_code_is_read_without_the_code(files, store):
    fill(files, store)
    status = json.loads(orch("status", "--store", store.uri, "--json").output)
    assert [(each["name"], each["done"], each["total"]) for each in status["sweeps"]] == [("my-sweep", 4, 4)]
    assert "no trial has failed" in orch("failures", "--store", store.uri).output
    plan = json.loads(orch("plan", "main", "--scale", "smoke", "--store", store.uri, "--json").output)
    assert plan["done"] == 1, "one of its trials is also in main"
    shown = {row["model"] for row in length_table(store, store.done()).rows}
    assert shown == {"rnn", "averaging (width 8, decay 0.5, flavour plain)"}


def test_results_and_report_accept_the_path_of_a_sweep_file(files, store):
    files.edit('    about = "the mean', '    summary = "plain mean"\n    about = "the mean')
    finish(store, [planned.trial for planned in plan_of(files, store, "model=averaging").trials])
    named = (files.path, "--scale", "smoke", "--store", store.uri)
    rows = json.loads(orch("results", *named, "--by", "model,variant,flavour", "--format", "json").output)
    assert [(row["model"], row["variant"], row["flavour"], row["done"]) for row in rows] == [
        ("averaging", "plain mean", "plain", 2), ("rnn", "", None, 0),
    ]  # fmt: skip
    page = files.folder / "report.html"
    assert "my-sweep at smoke scale, 2 of 4 trials" in orch("report", *named, "--output", page).output
    assert "Averages on copying" in page.read_text()


def test_results_are_withdrawn_by_user_defined_settings_without_the_code(files, store):
    ids = fill(files, store)
    discard = ("discard", "--store", store.uri, "--reason", "a test", "--yes")
    assert "1 result withdrawn" in orch(*discard, "--where", "flavour=plain,decay=0.5,task=last").output
    assert store.done() == set(ids.values()) - {ids["averaging on last modulo 3"]}
    assert "no result matches" in orch(*discard, "--where", "decay=0.75").output
    assert "1 result withdrawn" in orch(*discard, "--where", "patience=0,model!=averaging").output
    assert store.done() == {ids["rnn on modular_addition modulo 2"], ids["averaging on modular_addition modulo 2"]}
    assert "decay 'fast' is not a number" in orch(*discard, "--where", "decay=fast", expect=2).output
    assert (
        "there is no model 'averagin': did you mean 'averaging'?"
        in orch(*discard, "--where", "model=averagin", expect=2).output
    )
