"""Results that ship with the package: made small, read by every command, changed by none."""

import datetime
import re

import pytest
from click.testing import CliRunner

from orch import analysis
from orch.analysis.bundle import bundle
from orch.cli import main
from orch.core.errors import OrchError, StoreReadOnly
from orch.running.requests import find_trial
from orch.store import Store, bundled
from orch.store.records import parse_record
from orch.sweeps.experiments import demo
from orch.sweeps.registry import SWEEPS
from orch.sweeps.scales import LAPTOP
from orch.sweeps.selection import Results
from tests.analysis.finished import finish, trials
from tests.store.example import saved

NOW = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture
def store(tmp_path):
    """A store of the demo, with everything that a bundle leaves out."""
    store = Store.open(tmp_path / "runs")
    cells = list(demo.cells(LAPTOP, Results.none()))
    for cell in cells:
        for trial in cell.trials[:-1]:
            finish(store, trial, ood=1.0)
    failed = cells[0].trials[-1].id
    attempt = {"attempt_id": "a", "trial_id": failed, "event": "end", "outcome": "failed", "at": NOW}
    store.write("attempts", [attempt | {"traceback": "File /home/somebody", "error_message": "it broke"}])
    [angles] = SWEEPS["angles"].cells(LAPTOP, Results.none())
    for trial, ood in zip(angles.trials, (0.1, 0.9, 0.3), strict=False):
        finish(store, trial, ood=ood, at_100=ood)
        store.put_weights(trial.id, saved(trial.id.encode()))
    store.put_weights(cells[0].trials[0].id, saved(b"of no figure"))
    store.put_checkpoint(failed, saved(b"unfinished"))
    store.put_bytes("logs/driver.jsonl", b"{}")
    asked = {"sweeps": ["demo"], "scale": "laptop", "where": [], "seconds": {failed: 1.0}, "waiting": 0}
    store.put_json("sweeps/one.json", asked)
    store.put_json("searches/a/told/1.json", {"value": 1.0})
    store.put_json("sweeps/two.json", asked | {"code": ["digest"]})
    return store


@pytest.fixture
def shipped(store, tmp_path, monkeypatch):
    """The folder that `--store bundled` reads."""
    folder = tmp_path / "package" / "bundled"
    folder.parent.mkdir()
    bundle([store], folder)
    monkeypatch.setattr(bundled, "FOLDER", folder)
    return folder


def orch(*arguments, expect=0):
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == expect, result.output
    return result


def contents(folder):
    return {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in folder.rglob("*")}


def test_a_bundle_has_the_results_and_nothing_that_is_not_for_others(store, shipped):
    small = Store.open(shipped)
    assert small.done() == store.done()
    assert small.read("trials").drop_columns("finished_at").equals(store.read("trials").drop_columns("finished_at"))
    assert {path.name for path in shipped.iterdir()} == {
        "attempts", "bundle.json", "curves", "searches", "sweeps", "trials", "weights",
    }  # fmt: skip
    [attempt] = small.read("attempts").to_pylist()
    assert (attempt["traceback"], attempt["error_message"]) == (None, "it broke")
    assert list(small.list_json("sweeps")) == ["one"], "code of somebody's own is not shipped"
    [angles] = SWEEPS["angles"].cells(LAPTOP, Results.none())
    assert small.list_json("searches") == {"a/told/1": {"value": 1.0}}
    assert small.list_files("weights") == [f"weights/{angles.trials[1].id}.safetensors"]


def test_a_bundle_of_several_stores_has_each_trial_once(store, tmp_path):
    other = Store.open(tmp_path / "other")
    shared, *_ = SWEEPS["angles"].cells(LAPTOP, Results.none())
    for trial in (shared.trials[0], *trials()[:2]):
        finish(other, trial)
    for search in ("a", "b"):
        other.put_json(f"searches/{search}/told/2.json", {"value": 2.0})
    made = bundle([store, other], tmp_path / "both")
    assert Store.open(tmp_path / "both").done() == store.done() | other.done()
    assert made.num_trials == Store.open(tmp_path / "both").read("trials").num_rows == len(store.done()) + 2
    shown = Store.open(tmp_path / "both").list_json("searches")
    assert shown == {"a/told/1": {"value": 1.0}, "b/told/2": {"value": 2.0}}, "two histories of one search do not mix"


def test_curves_are_thinned_and_keep_their_ends(store, tmp_path):
    trial_id = next(iter(store.done()))
    steps = range(100, 100_100, 100)
    rows = [{"trial_id": trial_id, "attempt_id": f"of-{trial_id}", "step": step} for step in steps]
    store.write("curves", rows)
    bundle([store], tmp_path / "small", curve_points=11)
    kept = [
        row["step"] for row in Store.open(tmp_path / "small").read("curves").to_pylist() if row["trial_id"] == trial_id
    ]
    assert (len(kept), min(kept), max(kept)) == (11, 100, 100_000)


def test_a_bundle_replaces_a_bundle_and_nothing_else(store, tmp_path):
    folder = tmp_path / "small"
    bundle([store], folder)
    before = contents(folder)
    assert "trials" in orch("bundle", "--store", store.uri, "--output", str(folder)).stdout
    assert contents(folder).keys() != before.keys()
    other = Store.open(tmp_path / "other")
    other.write_trial(next(iter(store.read("trials").to_pylist())) | {"trial_id": "another"}, [])
    told = orch("bundle", "--store", other.uri, "--add", "--output", str(folder)).stdout
    assert ", 1 of them new" in told
    assert Store.open(folder).done() == store.done() | {"another"}
    (folder / "bundle.json").unlink()
    with pytest.raises(OrchError, match="in use for something else"):
        bundle([store], folder)
    with pytest.raises(OrchError, match="there are no results at"):
        bundle([store, Store.open(tmp_path / "none")], tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["query", "SELECT count(*) AS n FROM trials"], "13"),
        (["results", "--by", "model"], "transformer"),
        (["claims"], "supported"),
        (["reproduction"], "total"),
        (["status"], "demo"),
        (["plan", "demo"], "20"),
        (["failures"], "it broke"),
        (["report", "main", "--format", "markdown"], "| Bilinear |"),
        (["sweeps"], "demo"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_command_that_reads_reads_the_bundled_results_and_leaves_them_as_they_are(arguments, shown, shipped):
    before = contents(shipped)
    assert shown in orch(*arguments, "--store", "bundled").stdout
    assert contents(shipped) == before


def test_a_report_of_the_bundled_results_names_commands_that_work(shipped, tmp_path):
    orch("report", "demo", "--store", "bundled", "--output", str(tmp_path / "report.html"))
    text = (tmp_path / "report.html").read_text()
    [trial_id] = re.findall(r"orch train --trial (\w+) --store bundled", text)
    assert find_trial(Store.open("bundled"), trial_id).id == trial_id
    assert "orch sweep demo --scale laptop</code>" in text


@pytest.mark.parametrize(
    "arguments",
    [["sweep", "demo"], ["resume"], ["compact"], ["doctor"], ["discard", "--where", "model=lstm", "--reason", "x"]],
    ids=lambda arguments: arguments[0],
)
def test_every_command_that_writes_refuses_in_one_sentence(arguments, shipped):
    before = contents(shipped)
    shown = orch(*arguments, "--store", "bundled", expect=2).stderr
    assert shown == "error: the bundled results cannot be changed: name a store of your own with --store\n"
    assert contents(shipped) == before


def test_the_bundled_store_itself_takes_nothing(shipped):
    store = Store.open("bundled")
    before = contents(shipped)
    for change in (
        lambda: store.write("trials", [{"trial_id": "a"}]),
        lambda: store.put_json("sweeps/a.json", {}),
        lambda: store.delete("sweeps/one.json"),
        lambda: store.discard(list(store.done())[:1], "no"),
        store.compact,
        store.verify,
    ):
        with pytest.raises(StoreReadOnly):
            change()
    assert contents(shipped) == before
    assert store.uri == store.location == "bundled"


def test_without_a_store_the_error_names_the_bundled_results(shipped, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "package")
    monkeypatch.delenv("ORCH_STORE", raising=False)
    for command in (
        ["query", "SELECT * FROM trials"],
        ["results"],
        ["report"],
        ["claims"],
        ["reproduction"],
        ["status"],
    ):
        shown = orch(*command, expect=2).stderr
        assert shown.count("\n") == 1
        assert shown.endswith("run orch sweep first; --store bundled has those that came with orch\n")


def test_an_installation_without_results_says_so_and_does_not_point_to_them(tmp_path, monkeypatch):
    monkeypatch.setattr(bundled, "FOLDER", tmp_path / "none")
    assert "no results came with this installation" in orch("claims", "--store", "bundled", expect=2).stderr
    assert "bundled" not in orch("claims", "--store", str(tmp_path / "runs"), expect=2).stderr


def test_they_are_loaded_by_name_from_python_too(shipped):
    counted = parse_record((shipped / "bundle.json").read_bytes())["num_trials"]
    assert analysis.load("bundled").trials.num_rows == counted
