"""Grids: explicit numbers win over the scale, and whatever a scale leaves out is said."""

import pytest

from orch.core.errors import InvalidSettings, OrchError
from orch.models.lstm.config import Config as LSTM
from orch.planning.plan import make_plan
from orch.sweeps.grid import grid
from orch.sweeps.scales import LAPTOP, PAPER, SCALES, SMOKE
from orch.sweeps.selection import Results
from orch.tasks.modular_addition import ModularAddition
from tests.command_line import orch


def cells(scale=LAPTOP, **given):
    given = {"models": ["lstm"], "tasks": ["modular_addition"]} | given
    return list(grid(**given)(scale, Results.none()))


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_explicit_seeds_rates_and_steps_are_used_at_every_scale_by_slow_models_too(scale):
    for cell in cells(scale, models=["mamba", "lstm"], seeds=3, learning_rates=(1e-2, 1e-3), steps=50):
        pairs = {(trial.learning_rate, trial.init_seed) for trial in cell.trials}
        assert pairs == {(rate, seed) for rate in (1e-2, 1e-3) for seed in (0, 1, 2)}
        assert {trial.steps for trial in cell.trials} == {50}
        assert cell.left_out == ()


def test_what_a_grid_does_not_say_comes_from_the_scale():
    (cell,) = cells(SMOKE)
    trial = cell.example
    assert (trial.steps, trial.model.width, trial.validation_samples) == (SMOKE.steps, SMOKE.width, SMOKE.samples)
    (mamba,) = cells(models=["mamba"])
    assert len({trial.init_seed for trial in mamba.trials}) == 1
    assert mamba.left_out == ("1 of 2 seeds",)


def test_models_and_tasks_are_names_dictionaries_configs_or_classes():
    models = ["lstm", {"name": "block_diagonal", "block_size": 2}, LSTM(width=32), LSTM]
    found = cells(models=models, tasks=[ModularAddition(modulus=3), {"name": "dihedral", "modulus": 4}], width=16)
    assert [cell.example.model.width for cell in found] == [16, 16, 32, 16] * 2
    assert [(cell.example.task.name, cell.example.task.modulus) for cell in found[::4]] == [
        ("modular_addition", 3),
        ("dihedral", 4),
    ]
    assert found[1].example.model.block_size == 2


def test_no_length_beyond_the_one_that_is_given_is_tested():
    assert cells(test_length=100)[0].example.tested_lengths == (10, 20, 50, 100)
    assert cells(curve_lengths=[20, 40])[0].example.tested_lengths == (20, 40)
    assert cells(curve_lengths=(20,), test_length=60)[0].example.tested_lengths == (20, 60)
    assert cells()[0].example.tested_lengths == (10, 20, 50, 100, 200, 500)


def test_everything_wrong_with_a_grid_is_said_at_once():
    with pytest.raises(InvalidSettings) as error:
        grid(models="lstm", tasks=[], seeds=(), learning_rates=(0,), stesp=3)
    assert error.value.problems == [
        "models is not a list: write models=[…]",
        "tasks is empty: name at least one",
        "learning rate 0 is not a positive number: use one such as 1e-3",
        "seeds () are not seeds: give a number of them, or a list such as (0, 1, 2)",
        "there is no setting 'stesp': did you mean 'steps'?",
    ]


@pytest.mark.parametrize("given", [{"models": ["lsmt"]}, {"tasks": [{"name": "dihedral", "size": 3}]}])
def test_a_name_that_does_not_exist_is_an_error_when_the_cells_are_made(given):
    with pytest.raises(OrchError, match="there is no"):
        cells(**given)


def test_plan_says_what_the_laptop_scale_leaves_out_and_the_paper_scale_leaves_out_nothing():
    shown = orch("plan", "main", "--store", "nowhere").stdout
    assert "laptop scale trains mamba and transformer with 1 of 2 seeds and at most 1 layer\n" in shown
    assert "laptop scale trains every model with moduli up to 5\n" in shown
    assert make_plan(["main"], PAPER.name, [], None).left_out == []
    assert make_plan(["main"], LAPTOP.name, ["model=lstm"], None).left_out == [
        "laptop scale trains lstm with moduli up to 5"
    ]
    (seeds,) = [each for each in make_plan(["all"], LAPTOP.name, [], None).left_out if "seeds" in each]
    assert seeds.endswith("with 1 of 2 seeds in some cells")
