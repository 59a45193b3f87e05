"""The hash of a source as the revision of what it defines: which edits make a model new, and which do not."""

import shutil

import pytest

from orch.sweeps.expansion import expand
from orch.sweeps.scales import SMOKE
from orch.sweeps.selection import Results
from orch.usercode import UserCode, make_catalogue, read_sweeps
from orch.usercode.revision import BITS, revision


def revisions(path):
    catalogue = make_catalogue((UserCode.read(path),))
    return catalogue.models["averaging"].revision, catalogue.tasks["last"].revision


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("my_sweep.py", "DEPTH = 1", "DEPTH = 2"),
        ("my_sweep.py", "return symbol", "return state"),
        ("my_sweep.py", "return state", "return state  # why"),
        ("my_sweep.py", 'TITLE = "Averages on copying"\n', 'TITLE = "Averages on copying"; STEP = 2\n'),
        ("averaging.py", "mean(1)", "sum(1)"),
    ],
)  # fmt: skip
def test_an_edit_of_what_trains_makes_model_and_task_new(files, file, old, new):
    before = revisions(files.path)
    model, task = revisions(files.edit(old, new, files.folder / file))
    assert model != before[0]
    assert task != before[1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("scale.cell(task, Averaging(width=8))", "scale.cell(task, Averaging(width=16))"),
        ("    for task in", "    # more of them\n\n    for task in"),
        ("Averages on copying", "Something else"),
        ('"""For tests."""', '"""For tests,\nin two lines."""'),
        ("DEPTH = 1", "REPRODUCES = 'nothing'\nDEPTH = 1"),
    ],
)
def test_an_edit_of_what_only_asks_changes_no_revision(files, old, new):
    before = revisions(files.path)
    assert revisions(files.edit(old, new)) == before


def test_what_asks_counts_where_something_makes_more_of_it(files):
    before = revisions(files.edit("DEPTH = 1", "DEPTH = len(TITLE)"))
    assert revisions(files.edit("Averages on copying", "Something else")) != before


def test_a_revision_is_the_same_on_every_machine_and_exact_as_a_float():
    code = UserCode((("a.py", "from .b import x\n"), ("b.py", "x = 1\n")))
    assert (revision(code, "a.py"), revision(code, "b.py")) == (252672105935554, 124476723942747)
    assert BITS <= 53


def test_where_the_files_lie_and_what_the_sweep_is_called_do_not_count(files, tmp_path):
    before = revisions(files.path)
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(files.sweep, tmp_path / "elsewhere" / "renamed.py")
    shutil.copy(files.network, tmp_path / "elsewhere")
    assert revisions(tmp_path / "elsewhere" / "renamed.py") == before


def test_a_model_in_a_file_of_its_own_keeps_its_results_when_others_are_edited(files):
    text = files.sweep.read_text()
    start, end = text.index("@dataclass"), text.index("@dataclass", text.index("@dataclass") + 1)
    (files.folder / "model.py").write_text(text[: text.index("TITLE")] + text[start:end])
    files.sweep.write_text(text[: text.index("TITLE")] + "from .model import Averaging\n\nTITLE = 'x'\n" + text[end:])
    model, task = revisions(files.path)
    after = revisions(files.edit("return symbol", "return state"))
    assert after[0] == model
    assert after[1] != task
    assert revisions(files.edit("mean(1)", "sum(1)", files.network))[0] != model


def test_an_edited_model_never_meets_its_old_results_and_built_in_ones_keep_theirs(files):
    def ids(path):
        names, catalogue = read_sweeps([path])
        expanded = expand(names, SMOKE, Results.none(), catalogue).trials.values()
        return {(each.trial.model.name, each.trial.task.name): each.id for each in expanded}

    before = ids(files.path)
    after = ids(files.edit("mean(1)", "sum(1)", files.network))
    assert before.keys() == after.keys()
    same = {key for key in before if before[key] == after[key]}
    assert same == {("rnn", "modular_addition")}, "only what is not the user's at all is as it was"
    main = expand(["main"], SMOKE, Results.none()).trials
    assert before["rnn", "modular_addition"] in main
