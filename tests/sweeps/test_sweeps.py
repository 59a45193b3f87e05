"""The trials that sweeps expand to at every scale, and the trials that sweeps share."""

import dataclasses
import json
from collections import Counter
from itertools import product

import pytest

from orch.core.errors import UnknownName
from orch.sweeps.catalogue import resolve
from orch.sweeps.cell import Cell
from orch.sweeps.expansion import expand
from orch.sweeps.registry import SWEEPS
from orch.sweeps.scales import LAPTOP, PAPER, SCALES, SMOKE
from orch.sweeps.selection import Results, Waiting
from orch.sweeps.trial import Trial
from tests.new_process import run_python
from tests.sweeps.catalogue import catalogue_with

EVERYWHERE = [(name, scale) for name in sorted(SWEEPS) for scale in SCALES]


def trials_of(name, scale):
    """Return the trials of a sweep once all trials of main are finished, which others may wait for."""
    main = [each.trial for each in expand(["main"], SCALES[scale], Results.none()).trials.values()]
    return [each.trial for each in expand([name], SCALES[scale], finished(main)).trials.values()]


def finished(trials, accuracy=lambda trial: 0.5):
    """Return results in which exactly these trials are finished."""
    rows = {}
    for trial in trials:
        score = accuracy(trial)
        rows[trial.id] = {
            "learning_rate": trial.learning_rate,
            "validation_accuracy": score,
            "ood_accuracy": score,
            "length_curve": [{"length": length, "accuracy": score} for length in trial.tested_lengths],
            "test_length": trial.test_length,
            "test_samples": trial.test_samples,
            "stop_reason": "budget",
        }
    return Results(lambda: rows)


def test_main_at_paper_scale_is_fifteen_models_on_three_tasks_six_moduli_three_rates_and_three_seeds():
    trials = trials_of("main", "paper")
    assert len(trials) == 15 * 3 * 6 * 9 == 2430
    assert len({trial.id for trial in trials}) == 2430
    cells = Counter((trial.model, trial.task) for trial in trials)
    assert len(cells) == 15 * 18
    assert set(cells.values()) == {9}
    assert {trial.model.width for trial in trials} == {256}
    assert {trial.steps for trial in trials} == {100_000}
    assert {(trial.init_seed, trial.data_seed, trial.eval_seed) for trial in trials} == {
        (0, 0, 0),
        (1, 1, 0),
        (2, 2, 0),
    }


def test_main_has_the_variants_of_table_1():
    variants = Counter(
        (model.name, getattr(model, "block_size", getattr(model, "rank", getattr(model, "layers", None))))
        for model in {trial.model for trial in trials_of("main", "paper")}
    )
    assert variants == Counter(
        [
            *(("bilinear", None), ("factored", 256), ("rotation", None), ("lstm", None), ("rnn", None)),
            *(("block_diagonal", size) for size in (1, 2, 8, 64)),
            *((model, layers) for model in ("mamba", "transformer") for layers in (1, 2, 4)),
        ]
    )


def test_frozen_parity_has_six_trials_for_each_reading_of_the_24_published_cells():
    trials = trials_of("frozen-parity", "paper")
    readings = Counter(
        (trial.model.additive, trial.train_examples, trial.max_inputs, trial.model.train_normalisation)
        for trial in trials
    )
    assert len({reading[:3] for reading in readings}) == 24
    assert len(readings) == 6 + 2 * 18
    assert set(readings.values()) == {6}
    assert all(trial.model.frozen and trial.balanced and trial.test_length == 400 for trial in trials)


@pytest.mark.parametrize(("name", "scale"), EVERYWHERE)
def test_every_trial_of_every_sweep_at_every_scale_can_run(name, scale):
    trials = trials_of(name, scale)
    assert trials
    for trial in trials:
        assert trial.problems() == [], trial.label


@pytest.mark.parametrize(("name", "scale"), EVERYWHERE)
def test_every_trial_is_made_of_plain_values_of_the_declared_types(name, scale):
    for trial in trials_of(name, scale):
        again = Trial.from_dict(json.loads(json.dumps(trial.to_dict())))
        assert again.to_dict() == trial.to_dict()
        assert again.id == trial.id


@pytest.mark.parametrize(("name", "scale"), EVERYWHERE)
def test_every_trial_is_tested_at_the_length_that_decides_the_learning_rate(name, scale):
    assert all(100 in trial.tested_lengths for trial in trials_of(name, scale))


@pytest.mark.parametrize("name", sorted(SWEEPS))
def test_every_sweep_says_what_it_reproduces(name):
    sweep = SWEEPS[name]
    assert sweep.title
    assert sweep.reproduces
    assert "\n" not in sweep.title + sweep.reproduces


@pytest.mark.parametrize("name", sorted(SWEEPS))
def test_the_smoke_scale_has_every_kind_of_trial(name):
    def kinds(scale):
        return {
            (
                *(trial.model.name, getattr(trial.model, "layers", 0), getattr(trial.model, "additive", "")),
                *(trial.task.name, trial.task.modulus == 2, bool(trial.train_examples)),
            )
            for trial in trials_of(name, scale)
        }

    assert kinds("smoke") == kinds("paper")


def test_the_laptop_scale_has_one_trial_per_cell_of_slow_models_and_no_deep_ones():
    cells = list(SWEEPS["main"].cells(LAPTOP, Results.none()))
    slow = [cell for cell in cells if cell.example.model.slow]
    assert {cell.example.model.name for cell in slow} == {"mamba", "transformer"}
    assert {cell.variant for cell in slow} == {"1"}
    assert {len(cell.trials) for cell in slow} == {1}
    assert {len(cell.trials) for cell in cells if cell not in slow} == {4}


def test_variants_have_one_seed_at_laptop_scale_and_all_seeds_at_paper_scale():
    for name, (scale, seeds) in product(("param-matched", "additive"), (("laptop", {0}), ("paper", {0, 1, 2}))):
        of_main = set(trials_of("main", scale))
        assert {trial.init_seed for trial in trials_of(name, scale) if trial not in of_main} == seeds


def test_a_model_may_override_the_learning_rates():
    cells = SWEEPS["main"].cells(LAPTOP, Results.none())
    rates = {cell.example.model.name: tuple(dict.fromkeys(t.learning_rate for t in cell.trials)) for cell in cells}
    assert rates["rotation"] == (3e-3, 1e-3)
    assert rates["lstm"] == LAPTOP.learning_rates
    assert {trial.learning_rate for trial in trials_of("details", "laptop")} == set(LAPTOP.learning_rates)


def test_the_smoke_scale_has_few_trials():
    assert sum(len(trials_of(name, "smoke")) for name in resolve(["all"])) < 320


@pytest.mark.parametrize("scale", ["laptop", "smoke"])
def test_small_scales_still_test_main_at_length_500(scale):
    assert {trial.test_length for trial in trials_of("main", scale)} == {500}


ALL_IDS = """
from orch.sweeps.scales import SCALES
from orch.sweeps.selection import Results
from orch.sweeps.expansion import expand
from orch.sweeps.registry import SWEEPS
for scale in SCALES.values():
    print(*expand(sorted(SWEEPS), scale, Results.none()).trials)
import sys
print(*{"torch", "ray", "transformers", "numpy", "pyarrow", "pandas"} & set(sys.modules))
"""


def test_expansion_is_the_same_in_another_process_and_imports_nothing_heavy():
    *ids, imported = run_python(ALL_IDS).splitlines()
    assert imported == ""
    here = [list(expand(sorted(SWEEPS), scale, Results.none()).trials) for scale in SCALES.values()]
    assert [line.split() for line in ids] == here


def test_the_name_of_a_scale_does_not_change_trial_ids():
    renamed = dataclasses.replace(PAPER, name="another", about="differently")
    assert (
        expand(["main"], renamed, Results.none()).trials.keys() == expand(["main"], PAPER, Results.none()).trials.keys()
    )
    longer = dataclasses.replace(SMOKE, seeds=(0, 1))
    small, large = (expand(["main"], scale, Results.none()).trials.keys() for scale in (SMOKE, longer))
    assert small < large, "a larger grid has the smaller one's trials"
    assert len(large) == 2 * len(small)


def test_different_scales_share_no_trial():
    ids = [set(expand(["main", "frozen-parity"], scale, Results.none()).trials) for scale in SCALES.values()]
    assert len(set.union(*ids)) == sum(map(len, ids))


def test_the_demo_is_the_same_at_every_scale():
    assert len({tuple(trial.id for trial in trials_of("demo", scale)) for scale in SCALES}) == 1


def test_a_trial_of_two_sweeps_is_expanded_once_with_both_names(dependent):
    both = expand(["main", "dependent"], SMOKE, Results.none(), dependent)
    alone = [expand([name], SMOKE, Results.none(), dependent).trials for name in ("main", "dependent")]
    assert both.trials.keys() == alone[0].keys() | alone[1].keys()
    shared = {each.id for each in both.trials.values() if each.sweeps == ["main", "dependent"]}
    assert shared == alone[0].keys() & alone[1].keys()
    assert len(shared) == 2


def test_a_trial_that_a_sweep_yields_twice_is_expanded_once(dependent, monkeypatch):
    trial = SMOKE.trial(SMOKE.task("dihedral", 3), SMOKE.model("rnn"), learning_rate=1e-3, seed=0)
    monkeypatch.setattr("tests.sweeps.dependent.cells", lambda scale, results: [Cell([trial]), Cell([trial])])
    assert [each.sweeps for each in expand(["dependent"], SMOKE, Results.none(), dependent).trials.values()] == [
        ["dependent"]
    ]


def test_all_is_every_sweep_of_the_paper():
    tables = {"main", "param-matched", "dihedral", "factors", "additive", "frozen-parity"}
    assert set(resolve(["all"])) == tables | {"data-efficiency", "angles"}
    assert resolve(["main", "all", "main"])[0] == "main"
    assert len(resolve(["main", "all", "main"])) == len(resolve(["all"]))


def test_affordable_cells_try_another_learning_rate_only_while_none_succeeded():
    def learning_rates(scores: dict[float, float]) -> list[float]:
        """Return the learning rates tried in a cell, given the scores of finished ones by learning rate."""
        rows = {
            trial.id: {"ood_accuracy": scores[trial.learning_rate]}
            for trial in all_rates
            if trial.learning_rate in scores
        }
        *_, cell = SWEEPS["affordable"].cells(scale, Results(lambda: rows))
        return [trial.learning_rate for trial in cell.trials if isinstance(trial, Trial)]

    scale = dataclasses.replace(PAPER, moduli=(2, 5))
    *_, last = (cell for cell in SWEEPS["param-matched"].cells(scale, Results.none()) if not cell.example.model.slow)
    all_rates = [trial for trial in last.trials if trial.init_seed == 0]
    assert learning_rates({}) == [1e-4]
    assert learning_rates({1e-4: 0.95}) == [1e-4]
    assert learning_rates({1e-4: 0.94}) == [1e-4, 1e-3]
    assert learning_rates({1e-3: 0.95}) == [1e-3]
    assert learning_rates({1e-3: 0.5}) == [1e-3, 1e-4]
    assert learning_rates({1e-4: 0.5, 1e-3: 0.94}) == [1e-4, 1e-3, 1e-5]
    assert learning_rates({1e-4: 0.5, 1e-3: 0.5, 1e-5: 0.5}) == [1e-4, 1e-3, 1e-5]


def test_fresh_seeds_wait_for_the_best_rates_and_reuse_no_seed_that_chose_them():
    before = [*trials_of("main", "laptop"), *trials_of("dihedral", "laptop")]
    cells = list(SWEEPS["fresh-seeds"].cells(LAPTOP, finished(before)))
    trials = [trial for cell in cells for trial in cell.trials]
    assert {len(cell.trials) for cell in cells} == {5}
    assert not {trial.init_seed for trial in trials} & {trial.init_seed for trial in before}
    assert not {trial.id for trial in trials} & {trial.id for trial in before}
    assert {trial.task.name for trial in trials} == {trial.task.name for trial in before}
    waiting = [each for cell in SWEEPS["fresh-seeds"].cells(LAPTOP, Results.none()) for each in cell.trials]
    assert all(isinstance(each, Waiting) for each in waiting)


def test_fresh_seeds_try_other_rates_where_too_few_succeed():
    before = [*trials_of("main", "laptop"), *trials_of("dihedral", "laptop")]
    first, *_ = SWEEPS["fresh-seeds"].cells(LAPTOP, finished(before))

    def readings(*scores: float) -> list[str]:
        """Return the readings of the first model and task, given the scores of its first fresh seeds."""
        known = dict(zip(first.trials, scores, strict=False))
        results = finished([*before, *known], lambda trial: known.get(trial, 0.5))
        kind = (first.example.model, first.example.task)
        cells = SWEEPS["fresh-seeds"].cells(LAPTOP, results)
        return [cell.reading for cell in cells if (cell.example.model, cell.example.task) == kind]

    assert readings(1, 1, 1, 0.95, 0) == [""]
    assert readings(1, 1, 1, 0.94, 0) == ["", "other rates"]
    assert readings(0, 0, 0, 0) == [""], "not before all five are finished"


@pytest.mark.parametrize(("name", "nearest"), [("mian", "main"), ("frozen_parity", "frozen-parity"), ("al", "all")])
def test_an_unknown_sweep_suggests_the_nearest(name, nearest):
    with pytest.raises(UnknownName, match=f"there is no sweep '{name}': did you mean '{nearest}'"):
        expand([name], SMOKE, Results.none())


def test_trials_that_depend_on_results_wait_for_them_and_give_the_reason(dependent):
    expansion = expand(["dependent"], LAPTOP, Results.none(), dependent)
    assert len(expansion.trials) == 2 * 4
    assert Counter(each.reason for each in expansion.waiting) == {
        "the best learning rate for rnn on modular_addition modulo 2": 2,
        "the best learning rate for lstm on modular_addition modulo 2": 2,
    }
    waiting = [(each.trial.model.name, each.trial.steps) for each in expansion.waiting]
    assert waiting == [
        ("rnn", 5),
        ("rnn", 10),
        ("lstm", 5),
        ("lstm", 10),
    ]


def test_a_waiting_trial_of_several_sweeps_is_counted_once():
    catalogue = catalogue_with("dependent", "dependent-too")
    expansion = expand(["dependent", "dependent-too"], SMOKE, Results.none(), catalogue)
    assert len(expansion.waiting) == 4
    assert set(map(tuple, expansion.waiting.values())) == {("dependent", "dependent-too")}


def test_trials_whose_cell_is_finished_are_expanded_and_others_still_wait(dependent):
    cells = expand(["dependent"], LAPTOP, Results.none(), dependent).trials.values()
    rnn = [each.trial for each in cells if each.trial.model.name == "rnn"]
    results = finished(rnn, accuracy=lambda trial: 1.0 if trial.learning_rate == 3e-4 else 0.2)
    expansion = expand(["dependent"], LAPTOP, results, dependent)
    assert {each.reason for each in expansion.waiting} == {
        "the best learning rate for lstm on modular_addition modulo 2"
    }
    new = [each.trial for each in expansion.trials.values() if each.trial.steps < LAPTOP.steps]
    assert [(trial.model.name, trial.learning_rate) for trial in new] == [("rnn", 3e-4), ("rnn", 3e-4)]
    assert all(trial.problems() == [] for trial in new)


def test_one_unfinished_trial_keeps_its_cell_waiting(dependent):
    trials = [each.trial for each in expand(["dependent"], LAPTOP, Results.none(), dependent).trials.values()]
    assert len(expand(["dependent"], LAPTOP, finished(trials[1:]), dependent).waiting) == 2
    assert len(expand(["dependent"], LAPTOP, finished(trials), dependent).waiting) == 0


def test_a_trial_with_an_unknown_learning_rate_waits_for_the_same_reason():
    task, model = SMOKE.task("dihedral", 3), SMOKE.model("rnn")
    waiting = SMOKE.trial(task, model, learning_rate=Waiting("an answer"), seed=4)
    assert isinstance(waiting, Waiting)
    assert waiting.reason == "an answer"
    known = SMOKE.trial(task, model, learning_rate=1e-3, seed=4)
    assert dataclasses.replace(waiting.trial, learning_rate=1e-3) == known


def test_widths_shrink_in_proportion_and_stay_as_published_at_paper_scale():
    published = (80, 96, 128, 256, 512)
    assert tuple(map(PAPER.in_proportion, published)) == published
    assert tuple(map(LAPTOP.in_proportion, published)) == (20, 24, 32, 64, 128)
    assert min(map(SMOKE.in_proportion, published)) == 8
