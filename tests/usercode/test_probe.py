"""The probe: a user's models and tasks are tried in a process of its own, before anything else is started."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from orch.cli import main
from orch.core.errors import InvalidCode
from orch.planning.estimate import Basis
from orch.planning.packs import make_packs
from orch.planning.plan import make_plan
from orch.planning.probed import Probed
from orch.running.requests import Request
from orch.sweeps.trial import make_trial
from orch.usercode.probe import make_probe, probe
from orch.usercode.probe_cache import _path, read_probed, write_probed
from orch.usercode.probe_death import SECONDS_VARIABLE

FILE = '''\
"""For tests."""
import os
import random
import subprocess
import threading
import time
import warnings

import torch
from torch import nn

import orch

TITLE = "A module of one's own"


@orch.model
class Mine(nn.Module):
    """Sums of embeddings."""

    def __init__(self, vocabulary, width=8, depth=1):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.head = nn.Linear(width, vocabulary)
        self.cache = torch.zeros(1)

    def forward(self, tokens):
        x = self.embedding(tokens)
        pass
        return self.head(x.cumsum(1))


def cells(scale, results):
    yield scale.cell(scale.task("modular_addition", 2), Mine(width=8), learning_rates=(1e-3, 1e-2))
'''
LINE = FILE.splitlines().index("        pass") + 1
"""The line that tests replace."""
FORWARD = LINE - 2


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Use an empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write(folder: Path, line: str = "pass", file: str = FILE) -> str:
    path = folder / "mine.py"
    path.write_text(file.replace("        pass\n", textwrap.indent(line, "        ") + "\n"))
    return str(path)


def trials(path: str):
    return [planned.trial for planned in Request.read([path], "smoke", ()).plan(None).trials]


def problems(path: str) -> list[str]:
    with pytest.raises(InvalidCode) as caught:
        probe(trials(path))
    return caught.value.problems


SLEEP = "subprocess.Popen(['sleep', '30'])"
CASES = [
    ("x = x.no_such_thing", "+0: raises AttributeError ('Tensor' object has no"),
    ("x = x[..., :3]", "+1: raises RuntimeError (mat1 and mat2 shapes cannot be"),
    ("raise SystemExit(1)", "+0: raises SystemExit (1): fix it"),
    ("x = x / 0", "-2: returns NaN or infinity in training: check its divisions"),
    ("x = x / (self.training + 0.0)", "-2: returns NaN or infinity in evaluation"),
    (
        "x = x + (self.head.weight * 0).sum().sqrt()",
        "-2: has NaN or infinity in head.weight after one step: check its gradient",
    ),
    ("return x", "-2: returns the shape (64, 12, 8): return logits of shape"),
    ("os.fork()", "+0: forks the process, which torch does not survive: leave it out"),
    ("os._exit(3)", "+0: ends its process (exit code 3), as a crash or os._exit"),
    ("os.kill(os.getpid(), 11)", "+0: ends its process (signal SIGSEGV), as a crash"),
    (SLEEP, "+0: starts a process that stays: end it, because"),
    (
        "threading.Thread(target=time.sleep, args=(30,), daemon=True).start()",
        "+0: starts a thread that stays: end it, because",
    ),
    ("torch.set_default_dtype(torch.float64)", "+0: changes torch's default dtype:"),
    ("torch.set_num_threads(2)", "+0: sets the number of threads: leave it out"),
    ("torch.manual_seed(0)", "+0: seeds torch's random numbers: leave it out"),
    ("torch.use_deterministic_algorithms(True)", "+0: changes torch's determinis"),
    ("torch.set_grad_enabled(False)", "+0: switches gradients on or off for"),
    ("x = x * random.random()", "+0: uses global random numbers of Python or numpy"),
    ("os.environ['A_NAME'] = '1'", "+0: changes os.environ: set the variable"),
    ("os.chdir('/')", "+0: changes the current folder: use absolute paths"),
    ("warnings.simplefilter('error')", "+0: changes the filters of warnings: use"),
    ("self.cache += 1", "-2: changes its tensor cache, which is not saved with"),
]
"""A line of a model, the place of the problem relative to it, and what is said of the model."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Try a model with each of the lines, all at once, and return the folder and the problems."""
    folder = tmp_path_factory.mktemp("many")
    start, end = FILE.index("@orch.model"), FILE.index("def cells")
    models = [
        FILE[start:end].replace("Mine", f"Mine{number}").replace("        pass", textwrap.indent(line, "        "))
        for number, (line, _) in enumerate(CASES)
    ]
    cells = "".join(
        f"    yield scale.cell(scale.task('modular_addition', 2), Mine{number}(width=8))\n"
        for number in range(len(CASES))
    )
    (folder / "mine.py").write_text(FILE[:start] + "".join(models) + "def cells(scale, results):\n" + cells)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        return folder, problems(str(folder / "mine.py"))


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(len(CASES)), ids=[line for line, _ in CASES])
def test_what_a_model_does_wrong_is_said_with_its_line(found, number):
    folder, said = found
    _, expected = CASES[number]
    offset, _, message = expected.partition(": ")
    place = (
        LINE
        + int(offset)
        + number * (FILE[: FILE.index("def cells")].count("\n") - FILE[: FILE.index("@orch")].count("\n"))
    )
    mine = [problem for problem in said if f"model mine{number} " in problem]
    assert len(mine) == 1, mine
    assert mine[0].startswith(f"mine.py, line {place}: model mine{number} {message}")
    assert not (folder / "cache").exists(), "a failed probe is not remembered"


@pytest.mark.thorough
def test_a_model_that_hangs_is_named_with_the_line_it_hangs_at(tmp_path, cache, monkeypatch):
    monkeypatch.setenv(SECONDS_VARIABLE, "3")
    (found,) = problems(write(tmp_path, "while True: x = x + 1"))
    assert found.startswith(f"mine.py, line {LINE}: model mine has not finished a few steps after 3 s: is it stuck?")
    assert "ORCH_PROBE_SECONDS=600" in found


@pytest.mark.thorough
def test_problems_of_several_models_are_listed_at_once_though_one_ends_its_process(tmp_path, cache):
    line = "if self.depth == 1:\n    os._exit(1)\nif self.depth == 2:\n    raise ValueError('two')"
    file = FILE.replace("self.cache = torch.zeros(1)", "self.depth = depth").replace(
        "    yield scale.cell(scale.task(\"modular_addition\", 2), Mine(width=8)",
        "    for depth in (1, 2, 3):\n        yield scale.cell(scale.task(\"modular_addition\", 2), Mine(depth=depth)",
    )  # fmt: skip
    first, second = problems(write(tmp_path, line, file))
    assert first.startswith(f"mine.py, line {LINE + 1}: model mine ends its process (exit code 1)")
    assert second == f"mine.py, line {LINE + 3}: model mine raises ValueError (two): fix it"
    assert len(list((cache / "orch" / "probes").iterdir())) == 1, "the third works, and is remembered"


@pytest.mark.thorough
def test_what_a_file_changes_when_it_is_loaded_is_said_with_its_line(tmp_path, cache):
    path = write(tmp_path, file=FILE.replace("TITLE", "os.environ['OMP_NUM_THREADS'] = '4'\nTITLE"))
    loaded = trials(path)
    assert os.environ.get("OMP_NUM_THREADS") != "4", "workers that are started later would inherit it"
    with pytest.raises(InvalidCode, match=r"mine\.py, line 14: the file changes os\.environ: set the variable before"):
        probe(loaded)


@pytest.mark.thorough
def test_what_is_changed_for_a_while_and_given_back_is_fine(tmp_path, cache):
    line = """\
with torch.no_grad(), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print("hello from the model")
    subprocess.run(["true"])
    y = x.detach() * 2
"""
    (probed,) = probe(trials(write(tmp_path, line))).values()
    assert probed.step_seconds > 0
    assert probed.tests_seconds > 0


@pytest.mark.thorough
def test_a_task_of_ones_own_is_tried_too(files, cache):
    found = probe(trials(files.path))
    assert {(trial.model.name, trial.task.name) for trial in found} == {("averaging", "last")}
    files.edit("return symbol", "return symbol + self.no_such_setting")
    (problem,) = problems(files.path)
    line = files.sweep.read_text().splitlines().index("        return symbol + self.no_such_setting") + 1
    assert f"my_sweep.py, line {line}: model averaging raises AttributeError" in problem


@pytest.mark.thorough
def test_a_second_plan_starts_no_process_and_a_broken_cache_file_is_ignored(tmp_path, cache, monkeypatch):
    wanted = trials(write(tmp_path))
    said = []
    (kind,) = probe(wanted, said.append)
    assert len(said) == 1
    assert "mine on modular_addition" in said[0]
    assert probe(wanted, said.append).keys() == {kind}
    assert len(said) == 1
    _path(kind).write_text('{"step_seconds": ')
    assert read_probed(kind) is None
    assert probe(wanted, said.append).keys() == {kind}
    assert len(said) == 2


def test_a_changed_setting_or_revision_is_tried_anew(tmp_path, cache):
    trial = trials(write(tmp_path))[0].stackable()
    edited = trials(write(tmp_path, "x = x * 2"))[0].stackable()
    assert _path(trial) != _path(edited)


@pytest.mark.thorough
def test_estimates_and_packs_of_own_models_come_from_the_probe(tmp_path, cache):
    path = write(tmp_path)
    request = Request.read([path], "smoke", ())
    plan = request.plan(None, make_probe())
    assert {planned.basis for planned in plan.trials} == {Basis.PROBED}
    planned = plan.trials[0]
    assert planned.seconds == pytest.approx(planned.probed.seconds(planned.trial))


def test_a_pack_is_as_large_as_the_probe_allows(tmp_path):
    request = Request.read([write(tmp_path)], "laptop", ())

    def packs(probed: Probed) -> list[int]:
        plan = make_plan(
            request.sweeps, "laptop", (), None, None, request.catalogue, lambda trials: {trials[0].stackable(): probed}
        )
        return sorted(len(pack) for pack in make_packs(plan.trials, "cpu"))

    def took(**more) -> Probed:
        return Probed(step_seconds=1e-3, validation_seconds=1e-3, tests_seconds=1e-3, **more)

    assert packs(took(stacks=True, pack_seconds=1.5e-3)) == [1, 3], "the first of a model runs alone"
    assert packs(took(stacks=True, pack_seconds=4.5e-3)) == [1, 1, 1, 1], "no faster together"
    assert packs(took(stacks=True, pack_seconds=1.5e-3, memory=3e9)) == [1, 1, 1, 1], "too large together"
    assert packs(took(stacks=False, reason="it uses dropout")) == [1, 1, 1, 1]


@pytest.mark.thorough
def test_orch_plan_says_how_own_models_train_and_why(tmp_path, cache):
    path = write(tmp_path, "x = nn.functional.dropout(x, 0.1, self.training)")
    result = CliRunner().invoke(main, ["plan", path, "--scale", "smoke", "--store", str(tmp_path / "none")])
    assert result.exit_code == 0, result.output
    assert "mine: in turn, because it draws random numbers, as in dropout" in result.stdout
    assert "100% from steps of your own models that were just timed" in result.stdout
    shown = CliRunner().invoke(main, ["plan", path, "--scale", "smoke", "--store", str(tmp_path / "none"), "--json"])
    (own,) = json.loads(shown.stdout)["own_models"]
    assert (own["model"], own["stacked"]) == ("mine", False)


def test_a_problem_found_by_orch_plan_is_an_error_without_a_traceback(tmp_path, cache):
    path = write(tmp_path, "x = x.no_such_thing")
    result = CliRunner().invoke(main, ["plan", path, "--scale", "smoke", "--store", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert f"error: mine.py, line {LINE}: model mine raises AttributeError" in result.stderr


def test_plans_of_built_in_sweeps_start_no_process(tmp_path):
    code = (
        "import subprocess, sys\n"
        "def refuse(*given, **named): raise AssertionError('a process was started')\n"
        "subprocess.Popen.__init__ = refuse\n"
        "from orch.cli import main\n"
        f"main(['plan', 'main', '--scale', 'smoke', '--store', {str(tmp_path / 'none')!r}], standalone_mode=False)\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_target_that_is_no_token_is_the_tasks_fault_and_not_the_models(files, cache):
    files.edit("return symbol", "return -1 - symbol")
    with pytest.raises(InvalidCode, match=r"task last has the target -\d: return a token, from 0 to 4"):
        probe(trials(files.path))


def test_a_user_without_a_home_folder_has_no_cache_and_no_error(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    trial = make_trial("modular_addition", "rnn")
    write_probed(trial, Probed(step_seconds=1.0, validation_seconds=1.0, tests_seconds=1.0, memory=None))
    assert read_probed(trial) is None


@pytest.mark.thorough
@pytest.mark.parametrize("line", ["x = x.mean(1, keepdim=True).expand_as(x)", "x = x.flip(1).cumsum(1).flip(1)"])
def test_a_model_that_reads_what_follows_the_end_is_refused(tmp_path, cache, line):
    (problem,) = problems(write(tmp_path, line))
    assert "model mine reads what follows the end of a sample, which is padding: make it causal" in problem
