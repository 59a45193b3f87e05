"""`--where`: conditions on a trial's settings."""

import pytest

from orch.core.errors import OrchError
from orch.sweeps.expansion import expand
from orch.sweeps.scales import LAPTOP, SMOKE
from orch.sweeps.selection import Results, Waiting
from orch.sweeps.trial import make_trial
from orch.sweeps.where import parse_where

TRIALS = [each.trial for each in expand(["main", "frozen-parity"], LAPTOP, Results.none()).trials.values()]


def chosen(*conditions):
    where = parse_where(conditions)
    return [trial for trial in TRIALS if where.matches(trial)]


def test_no_condition_matches_everything():
    assert chosen() == TRIALS


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["model=bilinear"], lambda trial: trial.model.name == "bilinear"),
        (["model=bilinear,factored"], lambda trial: trial.model.name in ("bilinear", "factored")),
        (["task=state_machine"], lambda trial: trial.task.name == "state_machine"),
        (["modulus!=2"], lambda trial: trial.task.modulus != 2),
        (["modulus!=2,3"], lambda trial: trial.task.modulus == 5),
        (["model=lstm", "modulus=5"], lambda trial: trial.model.name == "lstm" and trial.task.modulus == 5),
        (["model=lstm,modulus=5"], lambda trial: trial.model.name == "lstm" and trial.task.modulus == 5),
        (
            ["model=lstm,rnn,modulus!=5,3,seed=0"],
            lambda trial: trial.model.name in ("lstm", "rnn") and trial.task.modulus == 2 and trial.init_seed == 0,
        ),
        (["modulus=2", "modulus=3"], lambda trial: trial.task.modulus in (2, 3)),
        (["modulus!=2", "modulus!=3"], lambda trial: trial.task.modulus == 5),
        (["seed=1"], lambda trial: trial.init_seed == 1),
        (["layers=1"], lambda trial: getattr(trial.model, "layers", 0) == 1),
        ([" model = lstm , rnn "], lambda trial: trial.model.name in ("lstm", "rnn")),
        (["block-size=8"], lambda trial: getattr(trial.model, "block_size", 0) == 8),
        (["additive=input+constant"], lambda trial: getattr(trial.model, "additive", "") == "input+constant"),
    ],
)
def test_conditions_choose_the_trials_they_name(conditions, expected):
    found = chosen(*conditions)
    assert 0 < len(found) < len(TRIALS)
    assert found == [trial for trial in TRIALS if expected(trial)]


@pytest.mark.parametrize("written", ["1e-3", "0.001", "1E-03", "0.0010"])
def test_numbers_compare_by_value(written):
    found = chosen(f"learning_rate={written}")
    assert found == [trial for trial in TRIALS if trial.learning_rate == 0.001]
    assert found


@pytest.mark.parametrize(("word", "frozen"), [("true", True), ("yes", True), ("No", False), ("false", False)])
def test_booleans_are_written_as_true_false_yes_or_no(word, frozen):
    found = chosen(f"frozen={word}")
    assert found == [trial for trial in TRIALS if getattr(trial.model, "frozen", None) is frozen]
    assert found


def test_a_trial_without_the_setting_matches_only_inequalities():
    assert {trial.model.name for trial in chosen("rank=256")} == {"factored"}
    assert {trial.model.name for trial in chosen("rank!=256")} == {trial.model.name for trial in TRIALS} - {"factored"}


def test_seed_means_the_seed_of_the_initialisation():
    trial = make_trial("dihedral", "rnn", init_seed=1, data_seed=2, eval_seed=3)
    assert [seed for seed in range(5) if parse_where([f"seed={seed}"]).matches(trial)] == [1]


def test_a_property_that_is_not_a_setting_cannot_be_named():
    mamba = make_trial("dihedral", "mamba", width=8, expansion=2)
    assert parse_where(["expansion=2"]).matches(mamba)
    with pytest.raises(OrchError, match="there is no setting 'inner'"):
        parse_where(["inner=16"])


def test_a_trial_that_waits_for_its_learning_rate_matches_any_learning_rate():
    waiting = SMOKE.trial(SMOKE.task("dihedral", 3), SMOKE.model("rnn"), learning_rate=Waiting("it"), seed=0).trial
    assert parse_where(["learning_rate=1e-5", "model=rnn"]).matches(waiting)
    assert parse_where(["learning_rate!=1e-5"]).matches(waiting)
    assert not parse_where(["learning_rate=1e-5", "model=lstm"]).matches(waiting)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("modle=bilinear", "there is no setting 'modle': did you mean 'model'?"),
        ("sead=1", "there is no setting 'sead': did you mean 'seed'?"),
        ("model=bilinaer", "there is no model 'bilinaer': did you mean 'bilinear'?"),
        ("task=sorting", "there is no task 'sorting': there are: automaton, "),
        ("additive=inputs", "there is no additive 'inputs': did you mean 'input'?"),
        ("modulus=five", "modulus 'five' is not a whole number: write it like modulus=3"),
        ("modulus=2.5", "modulus '2.5' is not a whole number"),
        ("learning_rate=fast", "learning_rate 'fast' is not a number: write it like learning_rate=0.001"),
        ("learning_rate=nan", "learning_rate 'nan' is not a number"),
        ("frozen=maybe", "frozen 'maybe' is not true or false"),
        ("curve_lengths=10", "curve_lengths is a list, which --where cannot compare"),
        ("bilinear", "--where 'bilinear' names no setting: write it like model=bilinear,factored"),
        ("", "--where '' names no setting"),
        ("model=", "there is no model ''"),
    ],
)
def test_the_error_for_an_invalid_condition_is_one_sentence(condition, message):
    with pytest.raises(OrchError) as caught:
        parse_where([condition])
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_all_problems_are_reported_at_once():
    with pytest.raises(OrchError) as caught:
        parse_where(["widht=3,modulus=x", "frozen=maybe"])
    assert len(str(caught.value).splitlines()) == 3
