"""Reading a sweep file: what it defines is known, and what is wrong with it is told in sentences with file and line."""

import pytest
from click.testing import CliRunner

from orch import models, tasks
from orch.cli import main
from orch.core.errors import InvalidCode
from orch.sweeps.registry import SWEEPS, expand, resolve
from orch.sweeps.scales import SCALES, SMOKE
from orch.sweeps.selection import Results
from orch.usercode import UserCode, behind, in_use, use


def trials(path, scale=SMOKE):
    (name,) = resolve([path])
    return [wanted.trial for wanted in expand([name], scale, Results.none()).wanted.values()]


def problem(path):
    """What is said of it, before anything is known of it."""
    known = [dict(registry) for registry in (models.REGISTRY, tasks.REGISTRY, SWEEPS)]
    with pytest.raises(InvalidCode) as caught:
        trials(path)
    if not in_use():
        assert known == [models.REGISTRY, tasks.REGISTRY, SWEEPS]
    return str(caught.value)


def test_a_file_is_a_sweep_like_any_other_with_its_models_and_tasks(files):
    found = trials(files.path)
    assert [(trial.model.name, trial.task.name) for trial in found] == [
        ("averaging", "last"), ("rnn", "last"), ("averaging", "modular_addition"), ("rnn", "modular_addition"),
    ]  # fmt: skip
    assert SWEEPS["my-sweep"].title == "Averages on copying"
    assert SWEEPS["my-sweep"].reproduces == ""
    assert SMOKE.model("averaging", decay=0.25) == models.REGISTRY["averaging"](width=SMOKE.width, decay=0.25)
    assert "my-sweep" not in resolve(["all"])
    assert resolve(["main", files.path, files.path]) == ["main", "my-sweep"]


def test_a_sweep_of_built_in_models_alone_needs_no_more_than_a_title_and_cells(files):
    path = files.folder / "plain.py"
    path.write_text(
        "TITLE = 'x'\ndef cells(scale, results):\n    yield scale.cell(scale.task('dihedral', 3), scale.model('rnn'))"
    )
    (trial,) = trials(str(path))
    assert trial.id in expand(["dihedral"], SMOKE, Results.none()).wanted
    assert behind([trial]) == []


def test_code_that_was_sent_is_the_code_that_was_read(files):
    code = UserCode.read(files.path)
    assert UserCode.from_dict(code.to_dict()) == code
    assert [name for name, _ in code.files] == ["my_sweep.py", "averaging.py"]
    files.edit("mean(1)", "sum(1)", files.network)
    assert UserCode.read(files.path).digest != code.digest


def test_a_trial_knows_the_code_behind_it(files):
    found = trials(files.path)
    code = UserCode.read(files.path)
    assert behind(found[:1]) == behind(found[:2]) == [code]
    assert behind(found[3:]) == []


def test_versions_of_one_file_live_side_by_side(files):
    old = UserCode.read(files.path)
    new = UserCode.read(files.edit("return symbol", "return 1 - symbol"))
    use([old])
    first = tasks.REGISTRY["last"]()
    use([new])
    assert (first.step(0, 1), tasks.REGISTRY["last"]().step(0, 1)) == (1, 0)
    use([old])
    assert tasks.REGISTRY["last"] is type(first)


def test_what_is_no_longer_in_use_is_forgotten(files):
    resolve([files.path])
    use(())
    assert "averaging" not in models.REGISTRY
    assert "last" not in tasks.REGISTRY
    assert "my-sweep" not in SWEEPS


def test_two_files_may_share_the_file_that_defines_a_model(files):
    (files.folder / "shared.py").write_text(files.sweep.read_text())
    for name in "ab":
        text = f"from .shared import Averaging, Last, cells\nTITLE = '{name}'\n"
        (files.folder / f"{name}.py").write_text(text)
    names = resolve([str(files.folder / "a.py"), str(files.folder / "b.py")])
    assert names == ["a", "b"]
    shared = expand(names, SMOKE, Results.none()).wanted.values()
    assert [each.sweeps for each in shared] == [["a", "b"]] * 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def step(self", "def step(self self", "my_sweep.py, line 45: invalid syntax"),
        ("DEPTH = 1", "DEPTH = 1 / 0", "my_sweep.py, line 9: ZeroDivisionError: division by zero: mend it"),
        ("DEPTH = 1", "import sys; sys.exit(3)", "my_sweep.py, line 9: SystemExit: 3: mend it"),
        ("DEPTH = 1", "import no_such_package", "my_sweep.py, line 9: ModuleNotFoundError: No module named 'no_such"),
        ("DEPTH = 1", "import averaging", "my_sweep.py, line 9: averaging.py would not travel to the workers: import"),
        ("DEPTH = 1", "from .helper import x", "my_sweep.py, line 9: imports helper.py, which is not beside it: check"),
        ("DEPTH = 1", "from ..mine import x", "my_sweep.py, line 9: only files of the same folder travel"),
        ("def cells", "def sells", "my_sweep.py: it asks for no trials: add a function cells(scale, results)"),
        ("TITLE =", "TITEL =", "my_sweep.py: it has no title: add a line such as TITLE ="),
        ('name = "averaging"', 'name = "rnn"', "my_sweep.py: there is a built-in model rnn: give it another name"),
        ('name = "last"', 'name = "dihedral"', "my_sweep.py: there is a built-in task dihedral: give it another name"),
        ('name = "last"', 'name = "the last"', "my_sweep.py: task 'the last' is no name: use small letters"),
        ("@dataclass(frozen=True, kw_only=True, slots=True)\nclass Last", "class Last", "task last is no dataclass"),
        ("    about =", "    above =", "my_sweep.py: model averaging does not say what it is about: add about ="),
        ("    about =", "    revision = 2\n    about =", "my_sweep.py: model averaging has a revision: leave it out"),
        ("def shapes", "def forms", "my_sweep.py: model averaging does not say its shapes: define it as ModelConfig"),
        ("def network", "def net", "my_sweep.py: model averaging does not say its network: define it as ModelConfig"),
        ("def target", "def aim", "my_sweep.py: task last does not say its target: define it as Task describes"),
        ("decay: float = setting(0.5, \"weight of what was before\")", "decay: float", "without a default: use"),
        ("decay: float", "decay: dict", "my_sweep.py: model averaging has a setting decay that is not plain: use int"),
        ("decay: float", "Decay: float", "my_sweep.py: model averaging has a setting Decay: use small letters"),
        ("decay: float", "seconds: float", "the setting seconds of averaging has the name of another column: rename"),
        ("decay: float", "seed: float", "the setting seed of averaging has the name of another column: rename it"),
        ("decay: float", "steps: int", "the setting steps of averaging has the name of another column: rename it"),
        ("decay: float", "machine_seed: int", "the setting machine_seed of averaging has the name of another column"),
        ("patience: int", "decay: float", "the setting decay of averaging has the name of another column: rename it"),
        ("decay: float", "layers: float", "the setting layers of averaging has another type than that of the built-in"),
        ("Averaging(width=8)", "Averaging(width=0)", "my_sweep.py, line 54: width 0 is not a width: use 1 or more"),
        ("Averaging(width=8)", "scale.model('averagin')", "my_sweep.py, line 54: there is no model 'averagin': did"),
        ("yield scale.cell(task, Averaging(width=8))", "yield task", "my_sweep.py, line 54: cells yields a Last: yie"),
        ("Averaging(width=8))", "Averaging(width=8), learning_rates=())", "my_sweep.py, line 54: cells yields a cell"),
        ("(vocabulary.size, self.width)", "(vocabulary.sise, self.width)", "my_sweep.py, line 21: AttributeError: 'Vo"),
        ("cells(scale, results)", "cells(scale)", "my_sweep.py: TypeError: cells() takes 1 positional argument but 2"),
        ('name = "last"', 'name = "averaging"', None),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_one_sentence(files, old, new, message):
    path = files.edit(old, new)
    if message is None:
        assert trials(path), "a task and a model may share a name"
        return
    found = problem(path)
    assert message in found
    assert "\n" not in found


def test_everything_wrong_with_all_files_is_told_at_once(files, another):
    other = another("other")
    files.edit("TITLE =", "TITEL =")
    files.edit("def shapes", "def forms")
    other.edit("def cells", "def sells")
    result = CliRunner().invoke(main, ["plan", files.path, other.path])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 3
    assert all(line.startswith("error: my_sweep.py: ") for line in result.stderr.splitlines())


def test_names_that_two_files_share_are_errors(files, another):
    other = another("other")
    other.edit("mean(1)", "sum(1)", other.network)
    renamed = other.sweep.rename(other.folder / "her_sweep.py")
    with pytest.raises(InvalidCode) as caught:
        resolve([files.path, str(renamed)])
    assert str(caught.value).splitlines() == [
        "task last is defined by both my_sweep.py and her_sweep.py: rename one of them",
        "model averaging is defined by both my_sweep.py and her_sweep.py: rename one of them",
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/my_sweep.py", "there is no file nowhere/my_sweep.py: check the name and the folder"),
        ("main.py", "main.py: there is a built-in sweep main: rename the file"),
        ("frozen_parity.py", "frozen_parity.py: there is a built-in sweep frozen-parity: rename the file"),
        ("all.py", "all.py: there is a built-in sweep all: rename the file"),
        ("my sweep.py", "my sweep.py is no name for a sweep: use letters, digits, _ and -, a letter first"),
    ],
)
def test_a_file_must_be_there_and_have_a_name_of_its_own(files, name, message, monkeypatch):
    monkeypatch.chdir(files.folder)
    if "/" not in name:
        files.sweep.rename(files.folder / name)
    assert problem(name) == message


def test_a_class_made_inside_cells_could_not_be_found_by_a_worker(files):
    text = "    class Other(Averaging):\n        name = 'other'\n        revision = 1\n    for task in"
    path = files.edit("    for task in", text)
    files.edit("Averaging(width=8)", "Other(width=8)")
    assert "model other cannot be found by its name: define or import it at the top level of the file" in problem(path)


def test_a_text_that_is_no_text_is_named(files):
    files.network.write_bytes(b"\xff\xfe\x00")
    assert "averaging.py cannot be read as text" in problem(files.path)


def test_a_plan_of_ones_own_file_says_what_is_wrong_without_a_traceback(files):
    result = CliRunner().invoke(main, ["plan", files.edit("DEPTH = 1", "DEPTH = 1 / 0")])
    assert result.exit_code == 2
    assert result.stderr == "error: my_sweep.py, line 9: ZeroDivisionError: division by zero: mend it\n"


@pytest.mark.parametrize("scale", SCALES)
def test_the_same_trials_are_planned_again_and_again(files, scale):
    assert [trial.id for trial in trials(files.path, SCALES[scale])] == [
        trial.id for trial in trials(files.path, SCALES[scale])
    ]
