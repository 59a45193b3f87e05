"""Sweeps by the names that `orch status` shows: their code is run only if they are named."""

import html
import json
import re
import shlex
import shutil

import pytest

from orch.core.errors import OrchError
from orch.planning.plan import TrialState
from orch.running.requests import Request, find_trial, record, recorded_requests
from orch.running.run_sweeps import _each_once, _num_waiting
from orch.store import Store, StoreWarning
from orch.usercode import name_sweeps
from orch.usercode.naming import newest_code
from tests.command_line import orch
from tests.finished_trials import finish


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "runs")


def run(store, path, scale="smoke", where=(), trials=None):
    """Record a sweep, and write the results of its first trials, as if it had been run."""
    request = Request.read([path], scale, where)
    plan = request.plan(store)
    finish(store, [planned.trial for planned in plan.trials[:trials] if planned.state is not TrialState.DONE])
    record(store, request, request.plan(store))
    return request


def test_a_recorded_sweep_is_planned_summarised_and_queried_by_name_without_its_file(files, store):
    run(store, files.path)
    shutil.rmtree(files.folder)
    [status] = json.loads(orch("status", "--store", store.uri, "--json").output)["sweeps"]
    named = (status["name"], "--store", store.uri)
    plan = json.loads(orch("plan", *named, "--json").output)
    assert (plan["scale"], plan["done"], plan["to_do"]) == ("smoke", 4, 0), "the scale is the recorded one"
    rows = json.loads(orch("results", *named, "--format", "json", "--by", "model").output)
    assert [(row["model"], row["done"], row["planned"]) for row in rows] == [("averaging", 2, 2), ("rnn", 2, 2)]
    query = ("query", "SELECT model, count(*) AS n FROM plan GROUP BY ALL ORDER BY ALL", "--sweep", *named)
    assert orch(*query, "--format", "csv").output.splitlines() == ["model,n", "averaging,2", "rnn,2"]
    assert "nothing to do: every trial has its result" in orch("sweep", *named).output
    assert "nothing to do: every trial has its result" in orch("resume", *named).output


def test_only_commands_that_name_a_sweep_run_its_code(files, store, tmp_path):
    mark = tmp_path / "was run"
    run(store, files.path, trials=2)
    files.edit("DEPTH = 1\n", f"open({str(mark)!r}, 'a').close()\n")
    run(store, files.path)
    assert mark.exists()
    mark.unlink()
    from orch.usercode import catalogue, loading

    for cached in (loading.load, catalogue.make_catalogue):
        cached.cache_clear()
    import sys

    for name in [name for name in sys.modules if name.startswith("orch_user_")]:
        del sys.modules[name]
    place = ("--store", store.uri)
    page = tmp_path / "page.html"
    for command in (
        ["status"], ["failures"], ["results"], ["report", "--output", page], ["query", "SELECT * FROM cells"],
        ["query", "SELECT * FROM plan"], ["plan", "main"], ["results", "main"], ["sweeps"], ["search", "--show"],
    ):  # fmt: skip
        orch(*command, *place, expect=2 if command[0] == "search" else 0)
        assert not mark.exists(), command
    orch("plan", "my-sweep", *place)
    assert mark.exists()


def test_an_unknown_name_suggests_recorded_ones(files, store):
    run(store, files.path)
    for command in (["plan"], ["results"], ["report"], ["sweep"]):
        said = orch(*command, "my-swep", "--store", store.uri, expect=2).stderr
        assert said == "error: there is no sweep 'my-swep': did you mean 'my-sweep'?\n"
    said = orch("resume", "my-swep", "main", "--store", store.uri, expect=2).stderr
    assert said.splitlines()[0] == "error: there is no recorded sweep 'my-swep': did you mean 'my-sweep'?"


def test_of_several_recordings_the_newest_counts_and_the_others_are_named(files, store):
    run(store, files.path, "smoke")
    _set_time(store, "2026-11-01")
    old = newest_code(store, "my-sweep", "smoke")
    files.edit("DEPTH = 1", "DEPTH = 2")
    run(store, files.path, "laptop", where=["model=averaging"])
    named = name_sweeps(["my-sweep"], store)
    assert named.scale == "laptop"
    assert "DEPTH = 2" in named.codes[0].files[0][1]
    assert named.note.splitlines()[0] == (
        "my-sweep was run at laptop and smoke scale: this is the last one, laptop; for the rest, add --scale smoke"
    )
    assert "several versions of its file" in named.note
    at_smoke = name_sweeps(["my-sweep"], store, "smoke")
    assert at_smoke.codes == (old,)
    assert "was run at" not in at_smoke.note
    assert "was run at laptop and smoke scale" in orch("plan", "my-sweep", "--store", store.uri).stderr


def _set_time(store, at):
    for name, values in store.list_json("sweeps").items():
        store.put_json(f"sweeps/{name}.json", values | {"at": at})


def test_resume_continues_only_the_named_sweeps(files, store):
    run(store, files.path)
    record(store, Request(("demo",), "laptop"), Request(("demo",), "laptop").plan(None))
    assert [request.sweeps for request in recorded_requests(store, ["demo"])] == [("demo",)]
    assert len(recorded_requests(store)) == 2


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [({"scale": "../../x"}, "there is no scale '../../x'"), ({"sweeps": ["nosuch"]}, "there is no sweep 'nosuch'")],
)
def test_a_record_of_something_unknown_is_named_and_keeps_no_other_from_being_resumed(store, wrong, reason):
    request = Request(("demo",), "laptop")
    record(store, request, request.plan(None))
    [right] = store.list_json("sweeps").values()
    store.put_json("sweeps/odd.json", right | wrong)
    with pytest.warns(StoreWarning, match=rf"sweeps/odd.json .* is left out \({reason}\): upgrade"):
        assert recorded_requests(store) == [request]


def test_a_name_whose_code_is_gone_says_so(files, store):
    run(store, files.path)
    for path in store.list_files("code"):
        store.delete(path)
    with pytest.raises(OrchError, match="the code of my-sweep is no longer in the store"):
        name_sweeps(["my-sweep"], store)


def test_a_trial_of_overlapping_recordings_counts_once(files, store):
    whole = Request.read([files.path], "smoke", ())
    part = Request.read([files.path], "smoke", ["model=rnn"])
    plans = [request.plan(store) for request in (whole, part, Request(("main",), "smoke"))]
    once = _each_once(plans)
    assert len({planned.id for planned in once}) == len(once)
    assert sum("my-sweep" in planned.sweeps for planned in once) == 4
    [shared] = [planned for planned in once if {"my-sweep", "main"} <= {*planned.sweeps}]
    assert shared.trial.label == "rnn on modular_addition modulo 2"


def test_trials_that_wait_in_two_recordings_wait_once():
    plans = [Request(("data-efficiency",), "smoke", where).plan(None) for where in ((), ("model=lstm",))]
    assert plans[1].num_waiting > 0
    assert _num_waiting(plans) == plans[0].num_waiting


def test_a_finished_trial_is_found_by_its_id_even_if_no_sweep_recorded_it(files, store):
    plan = Request.read([files.path], "smoke", ()).plan(store)
    request = run(store, files.path, where=["task=last"])
    finish(store, [planned.trial for planned in plan.trials if planned.trial.task.name != "last"])
    recorded = {planned.id for planned in request.plan(store).trials}
    for planned in plan.trials:
        assert find_trial(store, planned.id).id == planned.id
    assert len(recorded) == 2


def commands_of(page):
    """Return the commands in a page, as words."""
    return [shlex.split(html.unescape(text)) for text in re.findall("<code>(orch .*?)</code>", page.read_text())]


def headings_of(page):
    return re.findall(r"<h[123][^>]*>(.*?)</h[123]>", page.read_text())


def test_a_bare_report_shows_own_sweeps_first_without_their_file(files, store, tmp_path):
    run(store, files.path)
    shutil.rmtree(files.folder)
    page = tmp_path / "page.html"
    said = orch("report", "--store", store.uri, "--output", page).output
    assert said == f"wrote {page}: my-sweep at smoke scale, 4 of 4 trials\n"
    assert headings_of(page)[:3] == ["Averages on copying", "Sweeps of your own", "my-sweep at smoke scale"]
    assert "averaging (width 8, decay 0.5, flavour plain)" in page.read_text()
    request = Request(("main",), "smoke", ("model=rnn",))
    finish(store, [planned.trial for planned in request.plan(store).trials if planned.left])
    record(store, request, request.plan(store))
    orch("report", "--store", store.uri, "--output", page)
    found = headings_of(page)
    assert found.index("my-sweep at smoke scale") < found.index("main")
    assert "factors" not in found, "no other sweep of the paper was run"


@pytest.mark.parametrize("named", [(), ("my-sweep",), ("file",)])
def test_the_commands_of_a_report_work_when_they_are_pasted(files, store, tmp_path, named, monkeypatch):
    monkeypatch.chdir(files.folder)
    run(store, files.path)
    (tmp_path / "else where").mkdir()
    moved = Store.open(shutil.copytree(tmp_path / "runs", tmp_path / "else where" / "runs"))
    page = tmp_path / "page.html"
    given = ["my_sweep.py"] if named == ("file",) else named
    monkeypatch.chdir(tmp_path / "else where")
    if named == ("file",):
        monkeypatch.chdir(files.folder)
    orch("report", *given, "--scale", "smoke", "--store", moved.uri, "--output", page)
    monkeypatch.chdir(tmp_path)
    commands = commands_of(page)
    assert {words[1] for words in commands} >= {"sweep", "train", "query"}
    for _, verb, *words in commands:
        if verb == "sweep":
            plan = json.loads(orch("plan", *words, "--json").output)
            assert (plan["scale"], plan["done"], plan["to_do"]) == ("smoke", 4, 0)
        elif verb == "query":
            assert "averaging" in orch("query", *words).output or "rnn" in orch("query", *words).output
        elif verb == "report":
            assert "4 of 4 trials" in orch("report", *words, "--output", tmp_path / "again.html").output
        else:
            assert verb == "train"
            assert words[0] == "--trial"
            assert find_trial(Store.open(words[-1]), words[1]).id == words[1]


def test_a_report_of_an_edited_file_names_the_file_and_not_the_old_recording(files, store, tmp_path):
    run(store, files.path)
    files.edit('yield scale.cell(task, scale.model("rnn"))', 'yield scale.cell(task, scale.model("lstm"))')
    page = tmp_path / "page.html"
    orch("report", files.path, "--scale", "smoke", "--store", store.uri, "--output", page)
    [sweep] = [words for words in commands_of(page) if words[1] == "sweep"]
    assert sweep[2] == files.path
