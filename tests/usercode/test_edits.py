"""Results from before an edit: `orch plan` names the edit, `orch keep` counts them, `orch discard` withdraws them."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orch.cli._sweeps import read_definitions
from orch.core.errors import OrchError
from orch.notebook.sweep import define
from orch.running.requests import Request, record, recorded_requests
from orch.running.status import read_status
from orch.store import Store
from orch.tasks.from_function import task
from orch.usercode import UserCode
from orch.usercode.changes import changes
from orch.usercode.kept import keep
from tests.command_line import orch
from tests.finished_trials import finish
from tests.usercode.test_worker import train_unfinished


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")


def fill(files, store, *where):
    """Record the sweep with a result for each of its trials that has none."""
    request = Request.read([files.path], "smoke", where, store)
    plan = request.plan(store)
    finish(store, [planned.trial for planned in plan.trials if planned.left])
    record(store, request, plan)


def plan(files, store):
    """Return the counts of `orch plan` as JSON, and the line about edits that it prints for people."""
    words = ("plan", files.path, "--scale", "smoke", "--store", store.uri)
    lines = [line for line in orch(*words).output.splitlines() if "not counted" in line]
    assert len(lines) <= 1
    return json.loads(orch(*words, "--json").output), (lines or [""])[0]


def commands(line):
    """Return the words of the commands that a line suggests."""
    return [shlex.split(each)[1:] for each in re.findall(r"`(orch [^`]*)`", line)]


def test_after_a_formatter_nothing_is_to_do_and_after_an_edit_only_what_uses_it(files, store):
    fill(files, store)
    before = files.sweep.read_text()
    ruff = Path(sys.executable).with_name("ruff")
    style = ["--config", "line-length=40", "--config", "format.quote-style='single'"]
    subprocess.run([ruff, "format", "--isolated", *style, files.folder], check=True, capture_output=True)
    assert files.sweep.read_text() != before
    found, line = plan(files, store)
    assert (found["done"], found["to_do"], found["before_edits"], line) == (4, 0, [], "")
    files.edit("0.1, generator", "0.2, generator", files.network)
    found, line = plan(files, store)
    left = {row["model"]: row["to_do"] for row in found["by_model_and_task"] if row["to_do"]}
    assert (found["done"], left) == (2, {"averaging": 1}), "one on each of two tasks"
    assert line.startswith("2 trials were done before your edit of Network.fresh (averaging.py, line ")


def test_trained_results_are_kept_after_an_edit_and_resume_agrees(files, store):
    """From training to keeping, with real trials."""
    assert train_unfinished(Request.read([files.path], "smoke", ["model=averaging"], store), store) == 2
    files.edit("x_VH[tokens_BT].mean(1)", "x_VH[tokens_BT].mean(dim=1)", files.network)
    found, line = plan(files, store)
    assert (found["done"], found["to_do"]) == (0, 4)
    assert found["before_edits"] == [{"trials": 2, "edited": ["Network.forward (averaging.py, line 14)"]}]
    assert line.startswith(
        "2 trials were done before your edit of Network.forward (averaging.py, line 14): they are not counted. Withdraw"
    )
    keep = commands(line)[1]
    assert keep[0] == "keep"
    assert "2 trials count as done for the present code, 0 did before" in orch(*keep, "--yes").output
    found, line = plan(files, store)
    assert (found["done"], found["to_do"], line) == (2, 2, "")
    request = Request.read([files.path], "smoke", ["model=averaging"], store)
    assert train_unfinished(request, store) == 0
    assert recorded_requests(store) == [request]
    files.edit("width=8", "width=16")
    larger = Request.read([files.path], "smoke", ["model=averaging"], store)
    assert train_unfinished(larger, store) == 2, "workers train the new code under the revision that it counts as"
    assert train_unfinished(larger, store) == 0
    assert len({row["model_revision"] for row in store.read("trials").to_pylist()}) == 1


def test_a_kept_edit_that_is_edited_again_counts_only_when_kept_again(files, store):
    fill(files, store)
    files.edit("mean(1)", "mean(dim=1)", files.network)
    orch("keep", files.path, "--store", store.uri, "--yes")
    files.edit("h_KBH)", "+h_KBH)", files.network)
    found, _ = plan(files, store)
    assert found["done"] == 2
    assert found["before_edits"] == [{"trials": 2, "edited": ["Network.forward (averaging.py, line 15)"]}]
    orch("keep", files.path, "--store", store.uri, "--yes")
    assert plan(files, store)[0]["done"] == 4
    files.edit("+h_KBH)", "h_KBH)", files.network)
    assert plan(files, store)[0]["done"] == 4, "the version that was kept first is still kept"


def test_a_decision_to_keep_holds_in_its_store_only_and_however_the_file_is_written(files, store, tmp_path):
    other = Store.open(tmp_path / "other")
    fill(files, store)
    fill(files, other)
    files.edit("mean(1)", "mean(dim=1)", files.network)
    orch("keep", files.path, "--store", store.uri, "--yes")
    assert (plan(files, store)[0]["done"], plan(files, other)[0]["done"]) == (4, 2)
    files.edit("import torch\n", "import torch  # for the mean\n", files.network)
    files.sweep = files.sweep.rename(files.folder / "renamed.py")
    assert plan(files, store)[0]["done"] == 4


def test_a_request_that_was_recorded_before_keeping_resumes_with_the_kept_results(files, store):
    fill(files, store, "model=averaging")
    files.edit("mean(1)", "mean(dim=1)", files.network)
    request = Request.read([files.path], "smoke", ["model=averaging"], store)
    record(store, request, request.plan(store))
    assert request.plan(store).counts["to_do"] == 2
    orch("keep", files.path, "--store", store.uri, "--yes")
    (resumed,) = recorded_requests(store)
    assert resumed.plan(store).counts["to_do"] == 0
    (shown,) = json.loads(orch("status", "--store", store.uri, "--json").output)["sweeps"]
    assert (shown["done"], shown["total"]) == (2, 2)


def test_an_edit_of_model_and_task_names_both_and_both_are_kept(files, store):
    fill(files, store)
    files.edit("mean(1)", "sum(1)", files.network)
    files.edit("return symbol", "return self.modulus - 1 - symbol")
    found, _ = plan(files, store)
    assert found["done"] == 1
    model, task = "Network.forward (averaging.py, line 14)", "Last.step (my_sweep.py, line 46)"
    assert {tuple(each["edited"]): each["trials"] for each in found["before_edits"]} == {
        (model,): 1, (task,): 1, (model, task): 1,
    }  # fmt: skip
    orch("keep", files.path, "--store", store.uri, "--yes")
    assert plan(files, store)[0]["done"] == 4


def test_the_results_of_two_edits_in_a_row_are_counted_once_by_the_nearer_version(files, store):
    fill(files, store)
    files.edit("mean(1)", "sum(1)", files.network)
    fill(files, store, "model=averaging,task=last")
    files.edit("sum(1)", "amax(1)", files.network)
    found, line = plan(files, store)
    assert sum(each["trials"] for each in found["before_edits"]) == 2
    refused = orch("discard", "--before-edit", files.path, "--trial", "x", "--reason", "a", expect=2)
    assert "--before-edit names the results itself: leave out --where and --trial" in refused.output
    assert "3 results withdrawn" in orch(*commands(line)[0], "--yes").output
    assert plan(files, store)[1] == ""


def test_keeping_is_refused_where_it_would_lose_as_much_as_it_gains(files, store):
    fill(files, store, "task=last")
    files.edit("mean(1)", "sum(1)", files.network)
    fill(files, store, "task=modular_addition")
    assert plan(files, store)[0]["before_edits"][0]["trials"] == 1
    message = orch("keep", files.path, "--store", store.uri, expect=2).output
    assert "no more trials would count with the earlier results (3) than count now (3): run orch sweep" in message


def test_results_are_withdrawn_by_the_revision_of_their_code(files, store):
    fill(files, store)
    files.edit("mean(1)", "sum(1)", files.network)
    fill(files, store)
    revisions = {row["model_revision"] for row in store.read("trials").to_pylist() if row["model"] == "averaging"}
    assert len(revisions) == 2
    words = ("discard", "--reason", "a test", "--yes", "--store", store.uri, "--where")
    assert "2 results withdrawn" in orch(*words, f"model=averaging,model_revision={min(revisions)}").output
    assert "no result matches" in orch(*words, f"model=rnn,model_revision={max(revisions)}").output
    assert "2 results withdrawn" in orch(*words, f"model_revision={max(revisions)}").output


def test_results_of_an_older_hash_are_found_and_kept_although_nothing_was_edited(files, store):
    code = UserCode.read(files.path)
    older = replace(code, kept=(("model", "averaging", 11), ("task", "last", 12)))
    request = Request(("my-sweep",), "smoke", (), (older,))
    finish(store, [planned.trial for planned in request.plan(store).trials])
    store.put_json("code/older.json", code.to_dict() | {"models": {"averaging": 11}, "tasks": {"last": 12}})
    found, line = plan(files, store)
    assert (found["done"], found["before_edits"]) == (1, [{"trials": 3, "edited": []}])
    assert line.startswith(
        "3 trials were done with the same code under another revision, by an earlier version of orch"
    )
    orch(*commands(line)[1], "--yes")
    assert plan(files, store)[0]["done"] == 4


def test_there_is_nothing_to_keep_in_an_empty_store_or_without_an_edit(files, store):
    words = ("keep", files.path, "--store", store.uri)
    assert "was done before an edit: there is nothing to keep" in orch(*words, expect=2).output
    fill(files, store)
    assert "was done before an edit: there is nothing to keep" in orch(*words, expect=2).output
    assert "main is not a file of yours: name one that ends in .py" in orch("keep", "main", expect=2).output


@pytest.mark.parametrize(
    ("old", "new", "edited"),
    [
        ("SIZE = 1", "SIZE = 2", "SIZE (a.py, line 2)"),
        ("return x", "return -x", "helper (a.py, line 4)"),
        ("depth = 1", "depth = 2", "class Model (a.py, line 6)"),
        ("y = 1\n", "y = 2\n", "Model.run (a.py, line 9)"),
        ("from torch import nn", "from other import nn", "the import of nn (a.py, line 1)"),
        ("SIZE = 1", "SIZE = 1\nprint(1)", "a statement (a.py, line 3)"),
        ("SIZE = 1", "SIZE = 1  # one", None),
    ],
)
def test_an_edit_is_named_by_definition_and_line(old, new, edited):
    text = (
        "from torch import nn\nSIZE = 1\ndef helper(x):\n    return x\n"
        "class Model(nn.Module):\n    depth = 1\n"
        "    def run(self):\n        for x in helper(SIZE):\n            y = 1\n"
    )
    before, after = UserCode((("a.py", text),)), UserCode((("a.py", text.replace(old, new)),))
    assert changes(before, after, [("a.py", "Model")]) == ([edited] if edited else [])


def test_a_search_of_kept_code_counts_as_the_earlier_one(files, store, monkeypatch):
    fill(files, store)
    before = read_definitions(files.path, store).models["averaging"].revision
    files.edit("mean(1)", "mean(dim=1)", files.network)
    assert read_definitions(files.path, store).models["averaging"].revision != before
    orch("keep", files.path, "--store", store.uri, "--yes")
    assert read_definitions(files.path, store).models["averaging"].revision == before
    asked = []

    def not_run(question, *others):
        asked.append(question.definitions.models["averaging"].revision)
        raise OrchError("asked")

    monkeypatch.setattr("orch.search.run.run_search", not_run)
    words = ("--model", "averaging", "--task", "last", "--vary", "decay=0.25,0.5")
    orch("search", files.path, *words, "--store", store.uri, expect=2)
    assert asked == [before]


@task(inputs=2, states=2)
def flip(state, symbol):
    return state ^ symbol


def test_a_decision_holds_for_a_study_that_is_defined_in_python(store):
    asked = {"models": ["rnn"], "tasks": [flip], "store": store.uri, "name": "mine"}
    (code,) = define(**asked).request.code
    keep(store, code, [("task", "flip", 17)])
    assert define(**asked).request.catalogue.tasks["flip"].revision == 17


def test_keeping_runs_no_code_of_other_sweeps_in_the_store(files, store):
    fill(files, store)
    store.put_json("code/broken.json", {"files": [["other.py", "raise SystemExit"]], "models": {}, "tasks": {}})
    request = {"sweeps": ["other"], "scale": "smoke", "where": [], "seconds": {}, "waiting": 0}
    store.put_json("sweeps/other.json", request | {"code": ["broken"]})
    files.edit("mean(1)", "mean(dim=1)", files.network)
    assert "4 trials count as done" in orch("keep", files.path, "--store", store.uri, "--yes").output


def test_the_commands_about_an_edit_have_a_place_for_the_file_if_the_sweep_was_named_otherwise(files, store):
    fill(files, store)
    files.edit("mean(1)", "mean(dim=1)", files.network)
    request = Request.read([files.path], "smoke", (), store)
    record(store, request, request.plan(store))
    shown = orch("plan", "my-sweep", "--store", store.uri).output
    assert "`orch discard --before-edit FILE.py --reason edited --store" in shown
    assert "`orch keep FILE.py --store" in shown


def test_resume_continues_an_edited_sweep_with_its_newest_code_and_status_says_so(files, store):
    earlier = Request.read([files.path], "smoke", ())
    record(store, earlier, earlier.plan(store))
    files.edit("mean(1)", "sum(1)", files.network)
    newest = Request.read([files.path], "smoke", ("seed=0",))
    record(store, newest, newest.plan(store))
    assert earlier.code != newest.code
    assert {request.code for request in recorded_requests(store)} == {newest.code}
    assert {each.where: each.outdated for each in read_status(store).sweeps} == {"": True, "seed=0": False}
    assert "outdated: the file was edited and run again since" in orch("status", "--store", store.uri).output
