"""The revision of user code is a hash of its source: which edits change it, and which do not."""

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
def test_an_edit_of_training_code_changes_the_revisions_of_model_and_task(files, file, old, new):
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
def test_an_edit_of_cells_title_or_docstring_changes_no_revision(files, old, new):
    before = revisions(files.path)
    assert revisions(files.edit(old, new)) == before


def test_an_edit_of_the_title_changes_the_revision_where_code_uses_it(files):
    before = revisions(files.edit("DEPTH = 1", "DEPTH = len(TITLE)"))
    assert revisions(files.edit("Averages on copying", "Something else")) != before


def test_a_revision_is_the_same_on_every_machine_and_exact_as_a_float():
    code = UserCode((("a.py", "from .b import x\n"), ("b.py", "x = 1\n")))
    assert (revision(code, "a.py"), revision(code, "b.py")) == (252672105935554, 124476723942747)
    assert BITS <= 53


def test_folder_and_file_name_do_not_change_the_revision(files, tmp_path):
    before = revisions(files.path)
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(files.sweep, tmp_path / "elsewhere" / "renamed.py")
    shutil.copy(files.network, tmp_path / "elsewhere")
    assert revisions(tmp_path / "elsewhere" / "renamed.py") == before


def test_a_model_in_a_separate_file_keeps_its_revision_when_other_files_are_edited(files):
    text = files.sweep.read_text()
    start, end = text.index("@dataclass"), text.index("@dataclass", text.index("@dataclass") + 1)
    (files.folder / "model.py").write_text(text[: text.index("TITLE")] + text[start:end])
    files.sweep.write_text(text[: text.index("TITLE")] + "from .model import Averaging\n\nTITLE = 'x'\n" + text[end:])
    model, task = revisions(files.path)
    after = revisions(files.edit("return symbol", "return state"))
    assert after[0] == model
    assert after[1] != task
    assert revisions(files.edit("mean(1)", "sum(1)", files.network))[0] != model


def test_trials_of_an_edited_model_get_new_ids_and_built_in_ones_keep_theirs(files):
    def ids(path):
        names, catalogue = read_sweeps([path])
        expanded = expand(names, SMOKE, Results.none(), catalogue).trials.values()
        return {(each.trial.model.name, each.trial.task.name): each.id for each in expanded}

    before = ids(files.path)
    after = ids(files.edit("mean(1)", "sum(1)", files.network))
    assert before.keys() == after.keys()
    same = {key for key in before if before[key] == after[key]}
    assert same == {("rnn", "modular_addition")}, "only the trial without user code is unchanged"
    main = expand(["main"], SMOKE, Results.none()).trials
    assert before["rnn", "modular_addition"] in main
