"""The id of a trial: which changes alter it, and which must not."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from orch import models, tasks
from orch.core.errors import InvalidSettings, UnknownName
from orch.core.settings import canonical, canonical_json, from_dict, setting, to_dict
from orch.models.bilinear.config import Config as Bilinear
from orch.sweeps import trial as trial_module
from orch.sweeps.trial import Trial, make_trial
from orch.tasks.modular_addition import ModularAddition
from tests.new_process import modules_imported, run_python
from tests.small import MODELS


@pytest.fixture(scope="module")
def pinned_ids():
    """Return ids that stores contain. If one changes, finished results are lost: give a new field a `past` value."""
    return json.loads((Path(__file__).parents[1] / "golden" / "ids.json").read_text())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("task", sorted(tasks.REGISTRY))
def test_ids_are_unchanged(task, model, pinned_ids):
    assert make_trial(task, model, **tasks.REGISTRY[task].example_settings).id == pinned_ids[f"{task}/{model}"]


def test_the_id_of_a_trial_with_changed_settings_is_unchanged(pinned_ids):
    trial = make_trial(
        "state_machine", "factored", modulus=3, machine_seed=4, rank=16, learning_rate=1e-3, init_seed=2, data_seed=5
    )
    assert trial.id == pinned_ids["state_machine/factored, changed"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("task", sorted(tasks.REGISTRY))
def test_a_trial_converted_to_json_and_back_is_equal(task, model):
    trial = make_trial(task, model, **tasks.REGISTRY[task].example_settings)
    again = Trial.from_dict(json.loads(json.dumps(trial.to_dict())))
    assert again == trial
    assert again.id == trial.id


def test_every_setting_changes_the_id():
    trial = make_trial("state_machine", "block_diagonal")
    seen = {trial.id}
    for part in ("task", "model"):
        config = getattr(trial, part)
        for field in dataclasses.fields(config):
            changed = dataclasses.replace(
                trial, **{part: dataclasses.replace(config, **{field.name: other(config, field)})}
            )
            seen.add(changed.id)
    for field in dataclasses.fields(Trial):
        if field.name not in ("task", "model"):
            seen.add(dataclasses.replace(trial, **{field.name: other(trial, field)}).id)
    num_settings = (
        len(dataclasses.fields(Trial)) - 2 + sum(len(dataclasses.fields(p)) for p in (trial.task, trial.model))
    )
    assert len(seen) == 1 + num_settings


def other(config, field):
    value = getattr(config, field.name)
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return "unit"
    return (*value, 7) if isinstance(value, tuple) else value + 1


def test_equal_numbers_have_equal_ids_however_they_are_written():
    assert make_trial("dihedral", "rnn", learning_rate=1).id == make_trial("dihedral", "rnn", learning_rate=1.0).id
    direct = Trial(task=ModularAddition(modulus=5), model=Bilinear(), learning_rate=1)
    assert direct.id == make_trial("modular_addition", "bilinear", learning_rate=1.0).id


@pytest.mark.parametrize("model", MODELS)
def test_the_text_that_is_hashed_is_the_canonical_json(model):
    trial = make_trial("state_machine", model, learning_rate=3e-4, stop_loss=1e-05)
    parts = {"task": {"a": 1}, "model": {"b": 2}}
    expected = json.dumps(canonical(trial) | parts, sort_keys=True, separators=(",", ":"))
    assert canonical_json(trial, {"task": '{"a":1}', "model": '{"b":2}'}) == expected


@pytest.mark.parametrize("owner", ["task", "model", "trainer"])
def test_raising_a_revision_changes_the_id(owner, monkeypatch):
    trial = make_trial("modular_addition", "bilinear")
    before = trial.id
    trial_module._identify.cache_clear()
    if owner == "trainer":
        monkeypatch.setattr(trial_module, "TRAINER_REVISION", 99)
    else:
        monkeypatch.setattr(type(getattr(trial, owner)), "revision", 99)
    after = trial.id
    trial_module._identify.cache_clear()
    assert after != before


def test_a_field_added_later_is_left_out_while_it_has_its_past_value():
    @dataclass(frozen=True, kw_only=True, slots=True)
    class Before:
        width: int = 4

    @dataclass(frozen=True, kw_only=True, slots=True)
    class After:
        width: int = 4
        dropout: float = setting(0.1, "new, and on by default from now on", past=0.0)

    assert canonical(After(dropout=0.0)) == canonical(Before())
    assert canonical(After()) == {"width": 4, "dropout": 0.1}
    assert to_dict(After(dropout=0.0)) == {"width": 4, "dropout": 0.0}, "what is recorded has every field"


def test_the_id_is_the_same_in_another_process():
    code = "from orch.sweeps.trial import make_trial; print(make_trial('dihedral', 'mamba', modulus=3).id)"
    assert run_python(code).strip() == make_trial("dihedral", "mamba", modulus=3).id


def test_describing_a_trial_imports_no_torch():
    code = "from orch.sweeps.trial import make_trial; make_trial('dihedral', 'mamba').id"
    assert modules_imported(code, {"torch"}) == set()


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(InvalidSettings, match="did you mean 'bilinear'"):
        make_trial("modular_addition", "bilinaer")
    with pytest.raises(InvalidSettings, match="did you mean 'modulus'"):
        make_trial("modular_addition", "bilinear", moduls=3)
    with pytest.raises(UnknownName, match="did you mean 'width'"):
        from_dict(Bilinear, {"widht": 3})


def test_all_impossible_settings_are_reported_at_once():
    with pytest.raises(InvalidSettings) as caught:
        make_trial("modular_addition", "block_diagonal", modulus=1, block_size=7, learning_rate=-1.0, steps=0)
    text = str(caught.value)
    assert len(caught.value.problems) == 4
    for part in ("modulus 1", "block_size 7 does not divide width 256", "learning_rate -1.0", "steps 0"):
        assert part in text


@pytest.mark.parametrize(
    ("task", "model", "settings", "message"),
    [
        ("modular_addition", "rotation", {"width": 255}, "width 255 is odd"),
        ("modular_arithmetic", "transformer", {"test_length": 600}, "past the 1024 that transformer can read"),
        ("modular_addition", "transformer", {"width": 250}, "heads 4 does not divide width 250"),
        ("modular_addition", "rnn", {"train_examples": 9, "balanced": True}, "a balanced training set has one length"),
        ("modular_addition", "bilinear", {"balanced": True}, "balanced applies to a fixed training set"),
        ("modular_addition", "bilinear", {"min_inputs": 12}, "min_inputs 12 exceeds max_inputs 10"),
        ("modular_addition", "factored", {"rank": 0}, "rank 0"),
        ("modular_addition", "bilinear", {"additive": "both"}, "additive 'both' is unknown"),
        ("modular_addition", "bilinear", {"train_normalisation": "l2"}, "train_normalisation 'l2' is unknown"),
        ("modular_addition", "block_diagonal", {"block_size": 1, "train_normalisation": "block"}, "only their sign"),
        ("modular_addition", "mamba", {"layers": 0}, "layers 0"),
        ("modular_addition", "bilinear", {"width": 2.5}, "width 2.5 is not a whole number"),
        ("modular_addition", "bilinear", {"frozen": "yes"}, "frozen 'yes' is not true or false"),
    ],
)
def test_the_error_for_an_impossible_setting_names_it(task, model, settings, message):
    with pytest.raises(InvalidSettings, match=message):
        make_trial(task, model, **settings)


def test_only_learning_rate_and_seeds_may_differ_within_a_pack():
    base = make_trial("modular_addition", "rnn")
    alike = make_trial("modular_addition", "rnn", learning_rate=1e-3, init_seed=4, data_seed=5)
    assert base.stackable() == alike.stackable()
    assert base.stackable() != make_trial("modular_addition", "rnn", eval_seed=1).stackable()


def test_every_setting_has_a_description():
    for config_type in (Trial, *tasks.REGISTRY.values(), *models.REGISTRY.values()):
        for field in dataclasses.fields(config_type):
            assert field.name in ("task", "model") or field.metadata["description"], (config_type, field.name)
