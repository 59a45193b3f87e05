"""Models and tasks of a user's file in train, search, models, tasks and doctor."""

import json

import pytest

from orch.planning.estimate import Basis
from orch.running.doctor import CheckState, examine
from orch.running.requests import Request
from orch.search.history import record_question, recorded_searches, searches_with_code
from orch.search.space import parse_space
from orch.search.spec import SearchSpec
from orch.store import Store
from orch.tasks import REGISTRY
from orch.training.checkpoints import load_model
from orch.usercode import name_sweeps
from tests.command_line import orch

QUICK = [
    *("--width", "16", "--steps", "20", "--eval-every", "10", "--validation-samples", "64"),
    *("--test-samples", "32", "--test-length", "40", "--curve-lengths", "10,40"),
]
OWN = ("--model", "averaging", "--task", "last")


def test_train_knows_the_models_tasks_and_settings_of_a_file(files, tmp_path):
    saved = tmp_path / "model.safetensors"
    arguments = ["--decay", "0.25", "--flavour", "other", "--patience", "3", "--save", saved]
    shown = orch("train", files.path, *OWN, *QUICK, *arguments).stdout
    assert "averaging (decay 0.25, flavour other) on last modulo 3" in shown
    code = "\n".join(line.strip() for line in shown.splitlines() if line.startswith("  "))
    names = {}
    exec(code, names)  # as it is printed
    assert (names["trial"].model.decay, names["trial"].model.flavour, names["trial"].task.patience) == (
        0.25,
        "other",
        3,
    )
    result = orch("train", *OWN, files.path, *QUICK, "--json")
    assert json.loads(result.stdout)["trial"]["model"]["name"] == "averaging", "the file may come last"
    assert load_model(saved, name_sweeps([files.path]).catalogue)[1] == names["trial"]


def test_a_trial_of_a_file_is_the_trial_of_its_sweep(files):
    catalogue = name_sweeps([files.path]).catalogue
    planned = Request.read([files.path], "smoke", ["model=averaging,task=last"]).plan(None).trials[0].trial
    settings = {name: getattr(planned, name) for name in ("learning_rate", "steps", "eval_every", "test_length")}
    from orch.cli.train import resolve_trial

    sizes = {name: getattr(planned, name) for name in ("validation_samples", "test_samples", "curve_lengths")}
    more = {"width": 8, "batch_size": planned.batch_size, "stop_loss": planned.stop_loss}
    trial = resolve_trial("averaging", "last", None, None, {**settings, **sizes, **more}, catalogue)
    assert trial.id == planned.id


def test_the_help_of_train_and_search_lists_the_settings_of_a_file(files):
    for command in ("train", "search"):
        assert "--flavour" not in orch(command, "--help").output
        shown = orch(command, files.path, "--help").output
        assert "--flavour TEXT" in shown
        assert "which of two [plain] (averaging)" in shown
        assert "--patience INTEGER" in shown


@pytest.mark.parametrize("command", ["train", "search", "models", "tasks", "doctor"])
def test_a_file_that_cannot_be_used_is_one_sentence(command, files, tmp_path):
    assert "error: there is no file" in orch(command, tmp_path / "none.py", expect=2).stderr
    files.edit('TITLE = "Averages on copying"', "TITLE = 1 / 0")
    said = orch(command, files.path, expect=2).stderr
    assert said == "error: my_sweep.py, line 8: ZeroDivisionError: division by zero: fix it\n"


def test_a_setting_with_the_name_of_an_option_is_refused_by_train(files):
    files.edit("patience: int", "epochs: int")
    said = orch("train", files.path, *OWN, expect=2).stderr
    assert "has settings called like options of orch train: rename epochs" in said


def test_models_and_tasks_list_those_of_a_file_first(files):
    rows = json.loads(orch("models", files.path, "--task", "last", "--modulus", "3", "--width", "16", "--json").output)
    assert (rows[0]["model"], rows[0]["parameters"]) == ("averaging", 16 * 5 + 16 * 5 + 5)
    assert "bilinear" in {row["model"] for row in rows}
    tasks = json.loads(orch("tasks", files.path, "--json").output)
    assert tasks[0]["task"] == "last"
    assert len(tasks) == 1 + len(REGISTRY)


@pytest.mark.thorough
def test_doctor_checks_the_models_of_a_file_and_plans_use_their_rates(files, tmp_path):
    store, catalogue = Store.open(tmp_path / "runs"), name_sweeps([files.path]).catalogue
    found = {each.check: each for each in examine(store.uri, "cpu", 0.05, names=("averaging",), definitions=catalogue)}
    assert {name for name, each in found.items() if each.state is not CheckState.PASS} == set()
    assert {
        "averaging: gradients",
        "averaging: pack",
        "averaging: checkpoint",
        "averaging: speed",
        "rates",
    } <= found.keys()

    def basis_of(model):
        plan = Request.read([files.path], "smoke", [f"model={model}"]).plan(store)
        return {planned.basis for planned in plan.trials}

    assert (basis_of("averaging"), basis_of("rnn")) == ({Basis.TRIED}, {Basis.ASSUMED})
    list(examine(store.uri, "cpu", 0.05, names=("rnn",)))
    assert (basis_of("averaging"), basis_of("rnn")) == ({Basis.TRIED}, {Basis.TRIED}), "earlier rates are kept"
    files.edit("return {", "return  {")
    files.edit("0.5, ", "0.75, ")
    assert basis_of("averaging") == {Basis.ASSUMED}, "an edited model has no rate yet"


def test_a_search_of_own_models_is_shown_by_its_id_and_its_code_is_not_run_otherwise(files, tmp_path):
    store, catalogue = Store.open(tmp_path / "runs"), name_sweeps([files.path]).catalogue
    space = parse_space(["decay=0.25,0.5"], "last", "averaging", {}, catalogue)
    question = SearchSpec(task="last", model="averaging", fixed={}, space=space, definitions=catalogue)
    record_question(store, question, 2)
    assert recorded_searches(store) == {}
    assert searches_with_code(store) == [question.id]
    assert recorded_searches(store, question.id) == {question.id: (question, 2)}
    shown = orch("search", "--show", "--store", store.uri).output
    assert shown == f"search {question.id} is of a file of yours: orch search --show {question.id} runs its code\n"
    assert "averaging on last by decay=0.25,0.5" in orch("search", "--show", question.id, "--store", store.uri).output
    said = orch("search", files.path, "--show", "--store", store.uri, expect=2).stderr
    assert "--show reads recorded searches: leave out the file" in said


ROTOR = """
from torch import nn

import orch


class Rotor(nn.Module):
    def __init__(self, vocabulary, width=8, gated=True):
        super().__init__()
        self.table = nn.Embedding(vocabulary, vocabulary)

    def forward(self, tokens):
        return self.table(tokens)


@orch.task(inputs=2, states=lambda size: size)
def counter(state, symbol, size=2):
    return (state + symbol) % size


cells = orch.grid(models=[{models}], tasks=[{{"name": counter, "size": 3}}], learning_rates=1e-2, seeds=1)
"""


def test_a_class_in_a_dictionary_is_a_model_or_a_task_with_other_settings_than_its_defaults(tmp_path):
    path = tmp_path / "rotors.py"
    models = 'Rotor, {"name": Rotor, "gated": False}, orch.model(Rotor)(width=4), "lstm"'
    path.write_text(ROTOR.format(models=models))
    trials = [planned.trial for planned in Request.read([str(path)], "smoke", []).plan(None).trials]
    assert {(trial.model.name, trial.model.width, getattr(trial.model, "gated", None)) for trial in trials} == {
        ("rotor", 8, True),
        ("rotor", 8, False),
        ("rotor", 4, True),
        ("lstm", 16, None),
    }
    assert {trial.task.size for trial in trials} == {3}


@pytest.mark.parametrize(
    ("models", "error"),
    [
        (
            "Rotor(gated=False)",
            "rotors.py, line 21: TypeError: Rotor.__init__() missing 1 required positional argument: 'vocabulary':"
            " write dict(name=Rotor, …) with its settings, because a network is made for the vocabulary of each task",
        ),
        (
            "Rotor(4, gated=False)",
            "a Rotor is a module that was made already: name its class instead, with settings as dict(name=Rotor, …)",
        ),
        ("dict(name=Rotor, gates=False)", "there is no setting of model rotor 'gates': did you mean 'gated'?"),
    ],
)
def test_a_network_where_a_grid_wants_a_class_is_an_error_that_shows_how_to_give_settings(tmp_path, models, error):
    path = tmp_path / "rotors.py"
    path.write_text(ROTOR.format(models=models))
    shown = orch("sweep", path, expect=2)
    assert error in " ".join(shown.output.split())
