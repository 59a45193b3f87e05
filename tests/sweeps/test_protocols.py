"""Protocols: any sweep runs under any, ids say it all, and without one nothing changes."""

import dataclasses
import json

import pytest

import orch
from orch.core.errors import InvalidSettings
from orch.core.settings import field_types
from orch.planning.plan import make_plan
from orch.running.requests import Request, record, recorded_requests
from orch.store import Store
from orch.store.columns import SETTINGS
from orch.sweeps.expansion import expand
from orch.sweeps.protocols import DECIDED, PROTOCOLS, Protocol
from orch.sweeps.recipe import RECIPE
from orch.sweeps.scales import SMOKE, find_scale
from orch.sweeps.selection import Results
from orch.sweeps.trial import Trial
from orch.training.train import train
from tests.command_line import orch as command
from tests.finished_trials import finish
from tests.small import small_trial

every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
FILE = 'import orch\ncells = orch.grid(models=["rnn"], tasks=["parity_check"], seeds=1, test_length=77)\n'


def asked(trial: Trial) -> dict[str, object]:
    return {name: getattr(trial, name) for name in DECIDED}


@every_protocol
def test_main_is_planned_under_every_protocol_with_its_own_models_and_tasks(protocol: Protocol):
    usual = expand(["main"], SMOKE, Results.none()).trials.values()
    found = [each.trial for each in make_plan(["main"], f"smoke:{protocol.name}", (), None).trials]
    assert {json.dumps(asked(trial), sort_keys=True) for trial in found} == {
        json.dumps(dict(protocol.settings), sort_keys=True)
    }
    kinds = [
        {(trial.model.name, trial.task, trial.steps) for trial in trials}
        for trials in (found, [each.trial for each in usual])
    ]
    assert kinds[0] == kinds[1]
    shared = {trial.id for trial in found} & {each.id for each in usual}
    assert bool(shared) == (protocol.name == "paper"), "the paper's protocol asks what main asks anyway"


@every_protocol
def test_a_trial_trains_under_every_protocol(protocol: Protocol):
    trial = dataclasses.replace(small_trial("rnn", steps=2, eval_every=1), **protocol.settings).check()
    result = train(trial)
    assert set(result.test_accuracy) == {*protocol.settings["curve_lengths"], protocol.settings["test_length"]}


def test_a_protocol_overrides_what_a_sweep_sets_and_refuses_what_it_varies(monkeypatch):
    sentence = "frozen-parity trains on balanced sets of one length, but protocol chomsky trains on 3 to 40 inputs"
    with pytest.raises(InvalidSettings, match=f"{sentence}: run it without --protocol"):
        make_plan(["main", "frozen-parity"], "smoke:chomsky", (), None)
    trials = [small_trial("rnn", max_inputs=inputs) for inputs in (10, 20)]
    assert PROTOCOLS["chomsky"].problems("mine", trials[:1]) == []
    assert PROTOCOLS["chomsky"].problems("mine", trials) == [
        "mine varies max_inputs, which protocol chomsky decides: run it without --protocol"
    ]
    with pytest.raises(InvalidSettings, match="protocol chomsky decides max_inputs: leave out either"):
        orch.grid(models=["rnn"], tasks=["parity_check"], protocol="chomsky", max_inputs=30)
    given = ("--model", "rnn", "--task", "parity_check", "--protocol", "chomsky", "--max-inputs", "30")
    assert "protocol chomsky decides --max-inputs: leave out either" in command("train", *given, expect=2).output


def test_a_grid_with_a_protocol_asks_for_the_trials_of_the_command_line():
    plain, own = ({"models": ["rnn"], "tasks": ["parity_check"], "seeds": 2} for _ in range(2))
    under = [cell.trial_ids for cell in orch.grid(**plain)(find_scale("smoke:word-problem"), Results.none())]
    assert under == [cell.trial_ids for cell in orch.grid(**own, protocol="word-problem")(SMOKE, Results.none())]
    assert under != [cell.trial_ids for cell in orch.grid(**plain)(SMOKE, Results.none())]


def test_commands_find_the_trials_of_a_sweep_that_was_run_under_a_protocol(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    store = Store.open(tmp_path / "runs")
    request = Request.read([str(path)], "smoke:chomsky", ())
    plan = request.plan(store)
    finish(store, [planned.trial for planned in plan.trials])
    record(store, request, plan)
    path.unlink()
    where = ("--store", store.uri)
    [status] = json.loads(command("status", *where, "--json").output)["sweeps"]
    assert (status["scale"], status["done"]) == ("smoke:chomsky", 1)
    [again] = recorded_requests(store)
    assert [each.id for each in again.plan(store).trials] == [each.id for each in plan.trials]
    named = json.loads(command("plan", "mine", *where, "--json").output)
    assert (named["scale"], named["done"], named["to_do"]) == ("smoke:chomsky", 1, 0), "the recorded protocol"
    without = json.loads(command("plan", "mine", "--scale", "smoke", *where, "--json").output)
    assert (without["scale"], without["done"], without["to_do"]) == ("smoke", 0, 1)
    for options in (("mine",), ("mine", "--scale", "smoke", "--protocol", "chomsky")):
        [row] = json.loads(command("results", *options, *where, "--format", "json").output)
        assert (row["done"], row["planned"]) == (1, 1)
    assert "at smoke:chomsky scale" in command("report", "mine", *where, "--format", "markdown").output
    main = Request.read(["main"], "smoke:chomsky", ["model=rnn"]).plan(store)
    finish(store, [planned.trial for planned in main.trials])
    under = ("--scale", "smoke", "--protocol", "chomsky")
    table = command("report", "main", *under, *where, "--format", "markdown").output
    assert "| RNN |" in table, "its own table, because the published one asks something else"
    assert "nothing to do: every trial has its result" in command("resume", "mine", *where).output


def test_every_setting_of_the_recipe_is_an_option_a_column_and_a_setting_of_grids():
    help_text = command("train", "--help").output.partition("Recipe settings:")[2]
    for name in RECIPE:
        assert f"--{name.replace('_', '-')} " in help_text
    assert {*RECIPE, *DECIDED} <= {column.name for column in SETTINGS} & field_types(Trial).keys()
    [cell] = orch.grid(models=["rnn"], tasks=["parity_check"], seeds=1, optimiser="adamw", weight_decay=0.1)(
        SMOKE, Results.none()
    )
    assert (cell.example.optimiser, cell.example.weight_decay) == ("adamw", 0.1)


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("optimiser", "lion", "optimiser 'lion' is unknown: use adam, adamw or sgd"),
        ("schedule", "linear", "schedule 'linear' is unknown: use constant or cosine"),
        ("precision", "half", "precision 'half' is unknown: use float32, float64 or bfloat16"),
        ("weight_decay", -1.0, "weight_decay -1.0 is not a finite number from 0: use a positive number, or 0 for none"),
        ("clip_norm", float("inf"), "clip_norm inf is too large"),
        ("momentum", 0.9, "momentum is a setting of sgd, not of adam: leave it out, or use optimiser sgd"),
        ("momentum", 1.0, "momentum 1.0 is not between 0 and 1"),
        ("warmup_steps", 20, "warmup_steps 20 leave none of the 20 steps: use fewer"),
        ("curriculum", 1.5, "curriculum 1.5 is not a share of the steps: use a number from 0 to 1"),
        ("stop_accuracy", 2.0, "stop_accuracy 2.0 cannot be reached: use at most 1, or 0 to not stop by it"),
    ],
)
def test_an_impossible_recipe_gets_a_sentence_and_a_possible_one_an_id_of_its_own(setting, value, sentence):
    usual = small_trial("rnn")
    changed = dataclasses.replace(usual, **{setting: value})
    assert [problem for problem in changed.problems() if problem.startswith(sentence)]
    assert changed.id != usual.id
