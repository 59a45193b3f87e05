"""One trial never changes another, whatever its user's code does to the process; and the user is told what it did."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import deque
from pathlib import Path

import pytest
import torch

from orch.planning.across_cells import group_trials
from orch.running.failures import TrialError
from orch.running.forked_unit import ForkedUnit, open_unit
from orch.running.machines import Machines
from orch.running.options import RunOptions
from orch.running.requests import Request
from orch.running.run_state import RunState
from orch.running.session import warnings_about
from orch.running.units import Unit
from orch.running.worker import UnitRun
from orch.running.worker_messages import UnitRequest
from orch.search.point_run import PointRun
from orch.store import Outcome, Store
from orch.training.train import train
from tests.engine.conftest import wait_for
from tests.usercode.test_worker import unit_of as unit_of_trial

pytestmark = pytest.mark.thorough

FILE = '''\
"""For tests."""
import os
import random
import signal
import sys
import types
import warnings

import numpy
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode

import orch
import orch.training.evaluation

SEEN = []


class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


@orch.model
class Poisonous(nn.Module):
    """It changes something at its seventh call, and what it computes depends on the trials before it in its process."""

    def __init__(self, vocabulary, width=8, poison=0):
        super().__init__()
        self.embedding, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.poison = poison

    def forward(self, tokens):
        SEEN.append(self.poison)
        if len(SEEN) == 7:
            POISONS[self.poison]()
        return self.head(self.embedding(tokens).cumsum(1)) * (1 + len(set(SEEN)))


def cells(scale, results):
    task = scale.task("modular_addition", 2)
    for poison in range(len(POISONS)):
        yield scale.cell(task, Poisonous(width=8, poison=poison), learning_rates=(1e-2, 1e-3))
    yield scale.cell(task, scale.model("rnn"), learning_rates=(1e-2, 1e-3))


'''

TASK = '''\
"""For tests."""
import orch


@orch.task(inputs=3, states=3)
def mine(state, symbol):
    return (state + symbol) % 3


def cells(scale, results):
    for task in (mine(), scale.task("modular_addition", 3)):
        yield scale.cell(task, scale.model("rnn"), learning_rates=(1e-2, 3e-3, 1e-3))
'''

POISONS = [
    ("pass", ""),
    ("torch.set_default_dtype(torch.float64)", "changes torch's default dtype"),
    ("torch.set_default_device('cpu:0')", "changes torch's default device"),
    ("torch.set_num_threads(2)", "sets the number of threads"),
    ("torch.use_deterministic_algorithms(True)", "changes torch's deterministic or benchmark flags"),
    ("torch.backends.cudnn.benchmark = True", "changes torch's deterministic or benchmark flags"),
    ("torch.set_float32_matmul_precision('medium')", "changes the precision of arithmetic"),
    ("torch.backends.cudnn.allow_tf32 = True", "changes the precision of arithmetic"),
    ("torch.set_flush_denormal(True)", "changes the precision of arithmetic"),
    ("numpy.seterr(all='raise')", "changes the precision of arithmetic"),
    ("torch.autograd.set_detect_anomaly(True)", "switches anomaly detection or autocast on"),
    ("nn.modules.module.register_module_forward_hook(lambda m, i, o: o * 2)", "registers a hook for all modules"),
    ("register_optimizer_step_pre_hook(print)", "registers a hook for all modules"),
    ("Mode().__enter__()", "leaves a mode of torch switched on"),
    ("torch.set_printoptions(precision=2)", ""),
    ("random.seed(0)", "uses global random numbers"),
    ("numpy.random.rand()", "uses global random numbers"),
    ("os.environ['A_NAME'] = '1'", "changes os.environ"),
    ("os.chdir('/')", "changes the current folder"),
    ("warnings.simplefilter('error')", "changes the filters of warnings"),
    ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "changes how the process handles signals"),
    ("sys.path.insert(0, '/nowhere')", "changes where Python finds modules"),
    ("sys.modules['json'] = types.ModuleType('json')", "replaces json, which all code shares"),
    ("torch.relu = torch.tanh", "replaces torch.relu, which all code shares"),
    (
        "nn.Linear.reset_parameters = nn.Bilinear.reset_parameters",
        "replaces torch.nn.modules.linear.Linear.reset_parameters",
    ),
    ("torch.Tensor.cumsum = torch.Tensor.cumprod", "replaces torch.Tensor.cumsum"),
    ("orch.training.evaluation.evaluate = print", "replaces orch.training.evaluation.evaluate"),
]
"""A line of a model that changes its process, and what the user is told of it. The first changes nothing."""


def unit_of(trials, store) -> UnitRequest:
    alone = [unit_of_trial(trial, store) for trial in trials]
    attempts = {trial_id: attempt for each in alone for trial_id, attempt in each["attempts"].items()}
    return alone[0] | {"trials": [each["trials"][0] for each in alone], "attempts": attempts}


@pytest.fixture(scope="module")
def trials(tmp_path_factory):
    """Return the trials of the file, by poison (None for the built-in model): two learning rates each."""
    path = tmp_path_factory.mktemp("mine") / "mine.py"
    poisons = "".join(f"def poison{number}():\n    {line}\n\n\n" for number, (line, _) in enumerate(POISONS))
    path.write_text(f"{FILE}{poisons}POISONS = [{', '.join(f'poison{n}' for n in range(len(POISONS)))}]\n")
    found = {}
    for planned in Request.read([str(path)], "smoke", ()).plan(None).trials:
        found.setdefault(getattr(planned.trial.model, "poison", None), []).append(planned.trial)
    return found


def numbers(store, trial):
    """Return what was measured of a trial, but for times."""
    (row,) = [row for row in store.read("trials").to_pylist() if row["trial_id"] == trial.id]
    names = ("validation_loss", "train_loss", "validation_accuracy", "ood_accuracy", "length_curve", "steps_trained")
    return {name: row[name] for name in names}


def trained(trial, folder):
    """Train a trial as a worker does; return what was measured, and what it has changed."""
    store = Store.open(folder)
    unit = open_unit(unit_of([trial], store))
    assert unit.run_for(600)["done"]
    unit.stop()
    return numbers(store, trial), unit.changes


@pytest.fixture(scope="module")
def undisturbed(trials, tmp_path_factory):
    """Return what is measured of the trial that changes nothing, trained before all others."""
    return trained(trials[0][0], tmp_path_factory.mktemp("undisturbed"))[0]


@pytest.mark.parametrize("number", range(1, len(POISONS)), ids=[line for line, _ in POISONS[1:]])
def test_what_a_trial_changes_reaches_no_other_trial_and_is_named(trials, undisturbed, tmp_path, number):
    named = POISONS[number][1]
    _, changes = trained(trials[number][0], tmp_path / "poisoned")
    assert len(changes) == bool(named), changes
    assert all(text.startswith(f"model poisonous {named}") for text in changes)
    assert trained(trials[0][0], tmp_path / "after") == (undisturbed, [])


def test_a_worker_runs_no_user_code_itself(trials, tmp_path):
    before = set(sys.modules)
    (trial, _), built_in = trials[1], trials[None][0]
    store = Store.open(tmp_path)
    expected = train(built_in).curve[-1].validation_loss
    of_user = open_unit(unit_of([trial], store))
    of_all = open_unit(unit_of([built_in], store))
    assert (type(of_user), type(of_all)) == (ForkedUnit, UnitRun)
    assert of_user.run_for(600)["done"]
    assert of_all.run_for(600)["done"]
    assert numbers(store, built_in)["validation_loss"] == expected
    assert torch.get_default_dtype() == torch.float32
    assert not any(name.startswith("orch_user_") for name in set(sys.modules) - before)
    pids = {row["trial_id"]: row["pid"] for row in store.read("attempts").to_pylist()}
    assert pids[built_in.id] == os.getpid() != pids[trial.id]
    of_user.stop()


def test_a_pack_whose_trials_may_have_changed_each_other_is_trained_one_by_one(trials, undisturbed, tmp_path):
    store = Store.open(tmp_path)
    with pytest.raises(TrialError) as caught:
        open_unit(unit_of(trials[1], store)).run_for(600)
    failure = caught.value.failure
    assert failure.outcome == Outcome.INTERRUPTED, "it is nobody's failure, and never the one that stops a sweep"
    assert "The trials of this pack are trained one by one instead" in failure.message
    assert not store.done()
    unit = Unit(trials[1], [failure])
    retries = RunState(deque(), Machines(1, 0, 1, None), RunOptions(), None, store, "driver").retries(unit)
    assert [each.trials for each in retries] == [[trial] for trial in trials[1]]
    assert {row["outcome"] for row in store.read("attempts").to_pylist() if row["event"] == "end"} == {"interrupted"}


def test_trials_with_and_without_user_code_never_share_a_pack(trials, tmp_path):
    path = tmp_path / "task.py"
    path.write_text(TASK)
    request = Request.read([str(path)], "smoke", ())
    mixed = [planned for planned in request.plan(None).trials if planned.trial.model.name == "rnn"]
    packs = group_trials(mixed, "cpu")
    assert max(map(len, packs)) > 1, "some could share a pack"
    assert all(len({each.trial.task.name for each in pack}) == 1 for pack in packs)


def test_the_death_of_a_unit_is_the_loss_of_a_worker(trials, tmp_path):
    store = Store.open(tmp_path)
    unit = open_unit(unit_of(trials[0], store))
    (pid,) = {row["pid"] for row in store.read("attempts").to_pylist()}
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(TrialError) as caught:
        unit.run_for(600)
    assert (caught.value.failure.outcome, caught.value.failure.written) == (Outcome.LOST, False)
    unit.stop()


def test_a_unit_is_stopped_with_a_checkpoint_and_another_process_continues_it(trials, undisturbed, tmp_path):
    store, trial = Store.open(tmp_path), trials[0][0]
    unit = open_unit(unit_of([trial], store))
    unit.advance()
    assert (unit.step, unit.done, len(unit.curves[trial.id])) == (10, False, 1)
    unit.stop()
    assert store.get_checkpoint(trial.id) is not None
    unit = open_unit(unit_of([trial], store))
    assert unit.step == 10
    assert unit.run_for(600)["done"]
    assert numbers(store, trial) == undisturbed


@pytest.mark.parametrize("place", ["import orch", "    for task in"])
def test_planning_a_file_leaves_the_environment_and_the_folder_as_they_were(tmp_path, monkeypatch, place):
    monkeypatch.setenv("CHANGED_NAME", "before")
    text = "import os; os.environ |= {'CHANGED_NAME': 'after', 'NEW_NAME': 'after'}; os.chdir('/')\n"
    indent = " " * (len(place) - len(place.lstrip()))
    (tmp_path / "task.py").write_text(TASK.replace(place, f"{indent}{text}{place}"))
    folder = os.getcwd()
    assert Request.read([str(tmp_path / "task.py")], "smoke", ()).plan(None).trials
    assert (os.environ["CHANGED_NAME"], os.environ.get("NEW_NAME"), os.getcwd()) == ("before", None, folder)


def test_the_user_is_told_at_the_end_what_was_changed_and_that_nothing_else_was():
    assert warnings_about([]) == []
    first, last = warnings_about(["model a changes os.environ: set it before"])
    assert first == "warning: model a changes os.environ: set it before"
    assert last == "each of these trials had a process of its own: no other trial was affected"


KILLED = """\
import json, sys, time
from orch.running.forked_unit import open_unit
unit = open_unit(json.load(sys.stdin))
print("open", flush=True)
time.sleep(600)
"""


def test_units_end_with_their_worker(trials, tmp_path):
    store = Store.open(tmp_path)
    worker = subprocess.Popen([sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with worker.stdin as given, worker.stdout as output:
        given.write(json.dumps(unit_of(trials[0], store)).encode())
        given.close()
        assert output.readline() == b"open\n"
        (pid,) = {row["pid"] for row in store.read("attempts").to_pylist()}
        parents = [pid, *(parent_of(each) for each in (pid, parent_of(pid)))]
        assert parent_of(parents[-1]) == worker.pid
        worker.kill()
        worker.wait()
    wait_for(lambda: not any(is_alive(each) for each in parents))


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_orch_train_tells_what_a_file_changes_for_a_built_in_model_too(tmp_path):
    (tmp_path / "task.py").write_text(f"import torch\ntorch.set_default_dtype(torch.float64)\n{TASK}")
    small = ["--steps", "2", "--width", "8", "--test-length", "20", "--test-samples", "8", "--curve-lengths", "10"]
    command = [sys.executable, "-m", "orch", "train", "task.py", "--model", "rnn", "--task", "mine", *small]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "warning: your code changes torch's default dtype: give dtype= where" in done.stderr


def test_the_seeds_of_a_searched_point_have_a_process_each(trials, undisturbed, tmp_path):
    store = Store.open(tmp_path)
    point = {
        "objective": {"metric": "accuracy_10", "aggregate": "mean"},
        "known": {},
        "rungs": (),
        "result_path": "none",
    }
    run = PointRun(unit_of([trials[0][0], trials[1][0]], store) | point)
    report = run.run_for(600)
    run.stop()
    assert report["done"]
    assert [text.partition(":")[0] for text in report["changes"]] == ["model poisonous changes torch's default dtype"]
    assert len({row["pid"] for row in store.read("attempts").to_pylist()}) == 2
    assert numbers(store, trials[0][0]) == undisturbed
