"""Reading a sweep file: the catalogue with its definitions, and errors that name file and line in one sentence."""

import importlib
import pickle
import sys

import pytest

from orch import models, tasks
from orch.core.errors import InvalidCode
from orch.store import SCHEMAS
from orch.sweeps.catalogue import BUILT_IN, resolve
from orch.sweeps.expansion import expand
from orch.sweeps.registry import SWEEPS
from orch.sweeps.scales import SCALES, SMOKE
from orch.sweeps.selection import Results
from orch.usercode import UserCode, codes_defining, make_catalogue, name_sweeps
from tests.command_line import orch


def trials(path, scale=SMOKE):
    named = name_sweeps([path])
    names, catalogue = named.names, named.catalogue
    return [each.trial for each in expand(names, scale, Results.none(), catalogue).trials.values()]


def problem(path):
    """Return the message of the error that a file causes."""
    with pytest.raises(InvalidCode) as caught:
        trials(path)
    return str(caught.value)


def test_a_file_defines_a_sweep_with_its_models_and_tasks(files):
    found = trials(files.path)
    assert [(trial.model.name, trial.task.name) for trial in found] == [
        ("averaging", "last"), ("rnn", "last"), ("averaging", "modular_addition"), ("rnn", "modular_addition"),
    ]  # fmt: skip
    named = name_sweeps(["main", files.path, files.path])
    names, catalogue = named.names, named.catalogue
    assert catalogue.sweeps["my-sweep"].title == "Averages on copying"
    assert catalogue.sweeps["my-sweep"].reproduces == ""
    assert "my-sweep" not in resolve(["all"], catalogue)
    assert resolve(names, catalogue) == ["main", "my-sweep"]


def test_a_scale_makes_the_models_and_tasks_of_a_file_by_name(files):
    files.edit("Averaging(width=8)", 'scale.model("averaging", decay=0.25)')
    trial, *_ = trials(files.edit("(Last(modulus=3),", '(scale.task("last", 3),'))
    assert (trial.model.name, trial.model.width, trial.model.decay) == ("averaging", SMOKE.width, 0.25)
    assert (trial.task.name, trial.task.modulus) == ("last", 3)


def test_a_sweep_of_built_in_models_needs_only_cells(files):
    path = files.folder / "plain.py"
    path.write_text("def cells(scale, results):\n    yield scale.cell(scale.task('dihedral', 3), scale.model('rnn'))")
    (trial,) = trials(str(path))
    assert trial.id in expand(["dihedral"], SMOKE, Results.none()).trials
    assert codes_defining([trial]) == []


def test_code_converted_to_a_dict_and_back_is_equal(files):
    code = UserCode.read(files.path)
    assert UserCode.from_dict(code.to_dict()) == code
    assert [name for name, _ in code.files] == ["my_sweep.py", "averaging.py"]
    files.edit("mean(1)", "sum(1)", files.network)
    assert UserCode.read(files.path).digest != code.digest


def test_the_code_that_defines_a_trial_is_found(files):
    found = trials(files.path)
    code = UserCode.read(files.path)
    assert codes_defining(found[:1]) == codes_defining(found[:2]) == [code]
    assert codes_defining(found[3:]) == []


def test_two_versions_of_a_file_can_be_loaded_at_once(files):
    old = UserCode.read(files.path)
    new = UserCode.read(files.edit("return symbol", "return 1 - symbol"))
    first, second = (make_catalogue((code,)).tasks["last"] for code in (old, new))
    assert (first().step(0, 1), second().step(0, 1)) == (1, 0)
    assert make_catalogue((UserCode.from_dict(old.to_dict()),)).tasks["last"] is first


def test_reading_a_file_changes_no_global_state(files):
    known = [dict(registry) for registry in (models.REGISTRY, tasks.REGISTRY, SWEEPS)]
    finders, schema = list(sys.meta_path), SCHEMAS["trials"]
    trials(files.path)
    assert known == [models.REGISTRY, tasks.REGISTRY, SWEEPS]
    assert (finders, schema) == (sys.meta_path, SCHEMAS["trials"])
    with pytest.raises(TypeError):
        models.REGISTRY["averaging"] = None
    assert "averaging" not in BUILT_IN.models


def test_an_imported_file_runs_at_its_first_import_and_its_errors_are_raised_there(files):
    files.edit("import torch\n", "import torch\n\ntorch.no_such_thing\n", files.network)
    model = trials(files.path)[0].model
    importlib.invalidate_caches()
    for _ in range(2):
        with pytest.raises(AttributeError, match="no_such_thing"):
            model.network()


def test_a_model_of_a_file_can_be_pickled(files):
    model = trials(files.path)[0].model
    assert pickle.loads(pickle.dumps(model)) == model


def test_two_files_may_share_the_file_that_defines_a_model(files):
    (files.folder / "shared.py").write_text(files.sweep.read_text())
    for name in "ab":
        text = f"from .shared import Averaging, Last, cells\nTITLE = '{name}'\n"
        (files.folder / f"{name}.py").write_text(text)
    named = name_sweeps([str(files.folder / "a.py"), str(files.folder / "b.py")])
    names, catalogue = named.names, named.catalogue
    assert names == ("a", "b")
    shared = expand(names, SMOKE, Results.none(), catalogue).trials.values()
    assert [each.sweeps for each in shared] == [["a", "b"]] * 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def step(self", "def step(self self", "my_sweep.py, line 45: invalid syntax"),
        ("DEPTH = 1", "DEPTH = 1 / 0", "my_sweep.py, line 9: ZeroDivisionError: division by zero: fix it"),
        ("DEPTH = 1", "import sys; sys.exit(3)", "my_sweep.py, line 9: SystemExit: 3: fix it"),
        ("DEPTH = 1", "import no_such_package", "my_sweep.py, line 9: ModuleNotFoundError: No module named 'no_such"),
        ("DEPTH = 1", "import averaging", "my_sweep.py, line 9: averaging.py would not be sent to the workers: import"),
        ("DEPTH = 1", "from .helper import x", "my_sweep.py, line 9: imports helper.py, which is not in its folder"),
        ("DEPTH = 1", "from models import Model", "line 9: models is a part of orch: write from orch.models import …"),
        ("DEPTH = 1", "import tasks.task", "line 9: tasks is a part of orch: write from orch.tasks import …"),
        ("DEPTH = 1", "from orchestrator.trial import x", "my_sweep.py, line 9: orchestrator is a part of orch: write"),
        ("DEPTH = 1", "from ..mine import x", "my_sweep.py, line 9: only files of the same folder are sent"),
        ("def cells", "def sells", "my_sweep.py: it asks for no trials: add cells = orch.grid(models=[…], tasks"),
        ('TITLE = "Averages on copying"', "TITLE = 3", "my_sweep.py: its TITLE is not a text: write it like TITLE ="),
        ('name = "averaging"', 'name = "rnn"', "my_sweep.py: there is a built-in model rnn: give it another name"),
        ('name = "last"', 'name = "dihedral"', "my_sweep.py: there is a built-in task dihedral: give it another name"),
        ('name = "last"', 'name = "the last"', "my_sweep.py: task 'the last' is no name: use small letters"),
        ("@dataclass(frozen=True, kw_only=True, slots=True)\nclass Last", "class Last", "task last is no dataclass"),
        ("    about =", "    above =", "my_sweep.py: model averaging has no description: add about ="),
        ("    about =", "    revision = 2\n    about =", "my_sweep.py: model averaging has a revision: leave it out"),
        ("def shapes", "def forms", "model averaging has no shapes, which its network asks for: define"),
        ("def network", "def net", "my_sweep.py: model averaging has no network: define it as ModelConfig"),
        ("def target", "def aim", "my_sweep.py: task last has no target: define it as Task describes"),
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
def test_the_error_for_an_invalid_file_is_one_sentence(files, old, new, message):
    path = files.edit(old, new)
    if message is None:
        assert trials(path), "a task and a model may share a name"
        return
    found = problem(path)
    assert message in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("start", "title"),
    [("", "plain"), ('"""Two models.\n\nMore."""\n', "Two models."), ('"""x"""\nTITLE = "A title"\n', "A title")],
)
def test_the_title_is_that_of_the_file_else_its_first_line_else_its_name(tmp_path, start, title):
    path = tmp_path / "plain.py"
    path.write_text(f"{start}import orch\n\ncells = orch.grid(models=['rnn'], tasks=['dihedral'])\n")
    named = name_sweeps([str(path)])
    (name,), catalogue = named.names, named.catalogue
    assert catalogue.sweeps[name].title == title


MODULE = """
from torch import nn

import orch


class PlainNet(nn.Module):
    def __init__(self, vocabulary, width=8):
        super().__init__()
        self.layers = nn.Sequential(nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary))

    def forward(self, tokens):
        return self.layers(tokens)


@orch.task(inputs=2, states=2)
def parity(state, symbol):
    return (state + symbol) % 2


cells = orch.grid(models=[PlainNet], tasks=[parity], seeds=1, learning_rates=1e-3)
"""


def test_a_grid_in_a_file_may_name_a_class_of_modules(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MODULE)
    (trial,) = trials(str(path))
    assert (trial.model.name, trial.task.name, trial.model.width) == ("plain_net", "parity", 8)
    assert [code.name for code in codes_defining([trial])] == ["mine"]


def test_all_problems_of_all_files_are_reported_at_once(files, another):
    other = another("other")
    files.edit('TITLE = "Averages on copying"', "TITLE = 3")
    files.edit("def network", "def netwurk")
    other.edit("def cells", "def sells")
    result = orch("plan", files.path, other.path, expect=2)
    assert len(result.stderr.splitlines()) == 3
    assert all(line.startswith("error: my_sweep.py: ") for line in result.stderr.splitlines())


def test_names_that_two_files_share_are_errors(files, another):
    other = another("other")
    other.edit("mean(1)", "sum(1)", other.network)
    other.edit("return symbol", "return 1 - symbol")
    renamed = other.sweep.rename(other.folder / "her_sweep.py")
    with pytest.raises(InvalidCode) as caught:
        name_sweeps([files.path, str(renamed)])
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
def test_a_file_must_exist_and_have_an_unused_valid_name(files, name, message, monkeypatch):
    monkeypatch.chdir(files.folder)
    if "/" not in name:
        files.sweep.rename(files.folder / name)
    assert problem(name) == message


def test_a_class_defined_inside_cells_is_refused(files):
    text = "    class Other(Averaging):\n        name = 'other'\n        revision = 1\n    for task in"
    path = files.edit("    for task in", text)
    files.edit("Averaging(width=8)", "Other(width=8)")
    assert "model other cannot be found by its name: define or import it at the top level of the file" in problem(path)


def test_a_file_that_is_not_text_is_named(files):
    files.network.write_bytes(b"\xff\xfe\x00")
    assert "averaging.py cannot be read as text" in problem(files.path)


def test_orch_plan_reports_an_error_in_a_file_without_a_traceback(files):
    result = orch("plan", files.edit("DEPTH = 1", "DEPTH = 1 / 0"), expect=2)
    assert result.stderr == "error: my_sweep.py, line 9: ZeroDivisionError: division by zero: fix it\n"


@pytest.mark.parametrize("scale", SCALES)
def test_expanding_a_file_twice_gives_the_same_trials(files, scale):
    assert [trial.id for trial in trials(files.path, SCALES[scale])] == [
        trial.id for trial in trials(files.path, SCALES[scale])
    ]
