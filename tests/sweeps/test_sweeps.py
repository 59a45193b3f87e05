"""Sweeps as data: what they expand to, at every scale, and what they share."""

import dataclasses
import json
import subprocess
import sys
from collections import Counter
from itertools import product

import pytest

from orch.core.errors import UnknownName
from orch.sweeps.catalogue import BUILT_IN, resolve
from orch.sweeps.cell import Cell
from orch.sweeps.expansion import expand
from orch.sweeps.registry import SWEEPS, Sweep
from orch.sweeps.scales import LAPTOP, PAPER, SCALES, SMOKE
from orch.sweeps.selection import Results, Waiting
from orch.sweeps.trial import Trial

EVERYWHERE = [(name, scale) for name in sorted(SWEEPS) for scale in SCALES]


def trials_of(name, scale):
    """Once those are finished that others wait for."""
    main = [each.trial for each in expand(["main"], SCALES[scale], Results.none()).trials.values()]
    return [each.trial for each in expand([name], SCALES[scale], finished(main)).trials.values()]


@pytest.fixture
def dependent():
    """A catalogue with a sweep of this name."""
    return catalogue_with("dependent")


def catalogue_with(*names):
    sweeps = {name: Sweep(name, "tests.sweeps.dependent") for name in names}
    return dataclasses.replace(BUILT_IN, sweeps={**SWEEPS, **sweeps})


def finished(trials, accuracy=lambda trial: 0.5):
    """Results in which exactly these trials are finished."""
    rows = {}
    for trial in trials:
        score = accuracy(trial)
        scores = dict.fromkeys(("accuracy_100", "accuracy_200", "validation_accuracy", "ood_accuracy"), score)
        rows[trial.id] = {"learning_rate": trial.learning_rate} | scores
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
def test_every_trial_tests_the_length_that_learning_rates_are_chosen_by(name, scale):
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


def test_a_laptop_trains_one_trial_per_cell_of_the_slow_models_and_none_that_is_deep():
    cells = list(SWEEPS["main"].cells(LAPTOP, Results.none()))
    slow = [cell for cell in cells if cell.example.model.slow]
    assert {cell.example.model.name for cell in slow} == {"mamba", "transformer"}
    assert {cell.variant for cell in slow} == {"1"}
    assert {len(cell.trials) for cell in slow} == {1}
    assert {len(cell.trials) for cell in cells if cell not in slow} == {4}


def test_a_laptop_asks_many_variants_with_one_seed_and_the_paper_with_all():
    for name, (scale, seeds) in product(("param-matched", "additive"), (("laptop", {0}), ("paper", {0, 1, 2}))):
        of_main = set(trials_of("main", scale))
        assert {trial.init_seed for trial in trials_of(name, scale) if trial not in of_main} == seeds


def test_a_model_may_have_learning_rates_of_its_own():
    cells = SWEEPS["main"].cells(LAPTOP, Results.none())
    rates = {cell.example.model.name: tuple(dict.fromkeys(t.learning_rate for t in cell.trials)) for cell in cells}
    assert rates["rotation"] == (3e-3, 1e-3)
    assert rates["lstm"] == LAPTOP.learning_rates
    assert {trial.learning_rate for trial in trials_of("details", "laptop")} == set(LAPTOP.learning_rates)


def test_the_smoke_scale_has_no_more_than_it_needs():
    assert sum(len(trials_of(name, "smoke")) for name in resolve(["all"])) < 320


@pytest.mark.parametrize("scale", ["laptop", "smoke"])
def test_small_scales_still_test_main_at_length_500(scale):
    assert {trial.test_length for trial in trials_of("main", scale)} == {500}


ALL_IDS = """
import sys
from orch.sweeps.scales import SCALES
from orch.sweeps.selection import Results
from orch.sweeps.expansion import expand
from orch.sweeps.registry import SWEEPS
for scale in SCALES.values():
    print(*expand(sorted(SWEEPS), scale, Results.none()).trials)
heavy = {"torch", "ray", "transformers", "numpy", "pyarrow", "pandas"}
print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


def test_expansion_is_the_same_in_another_process_and_imports_nothing_heavy():
    other = subprocess.run([sys.executable, "-c", ALL_IDS], capture_output=True, text=True, check=True)
    assert other.stderr.strip() == "[]"
    here = [list(expand(sorted(SWEEPS), scale, Results.none()).trials) for scale in SCALES.values()]
    assert [line.split() for line in other.stdout.splitlines()] == here


def test_a_scale_is_no_part_of_a_trials_identity():
    renamed = dataclasses.replace(PAPER, name="another", about="differently")
    assert (
        expand(["main"], renamed, Results.none()).trials.keys() == expand(["main"], PAPER, Results.none()).trials.keys()
    )
    longer = dataclasses.replace(SMOKE, seeds=(0, 1))
    small, large = (expand(["main"], scale, Results.none()).trials.keys() for scale in (SMOKE, longer))
    assert small < large, "a larger grid has the smaller one's trials"
    assert len(large) == 2 * len(small)


def test_unequal_scales_never_mix():
    ids = [set(expand(["main", "frozen-parity"], scale, Results.none()).trials) for scale in SCALES.values()]
    assert len(set.union(*ids)) == sum(map(len, ids))


def test_the_demo_is_the_same_at_every_scale():
    assert len({tuple(trial.id for trial in trials_of("demo", scale)) for scale in SCALES}) == 1


def test_what_two_sweeps_ask_for_is_there_once_with_both_names(dependent):
    both = expand(["main", "dependent"], SMOKE, Results.none(), dependent)
    alone = [expand([name], SMOKE, Results.none(), dependent).trials for name in ("main", "dependent")]
    assert both.trials.keys() == alone[0].keys() | alone[1].keys()
    shared = {each.id for each in both.trials.values() if each.sweeps == ["main", "dependent"]}
    assert shared == alone[0].keys() & alone[1].keys()
    assert len(shared) == 2


def test_a_sweep_that_asks_twice_gets_one_trial(dependent, monkeypatch):
    trial = SMOKE.trial(SMOKE.task("dihedral", 3), SMOKE.model("rnn"), learning_rate=1e-3, seed=0)
    monkeypatch.setattr("tests.sweeps.dependent.cells", lambda scale, results: [Cell([trial]), Cell([trial])])
    assert [each.sweeps for each in expand(["dependent"], SMOKE, Results.none(), dependent).trials.values()] == [
        ["dependent"]
    ]


def test_all_is_every_sweep_of_the_paper():
    assert set(resolve(["all"])) == SWEEPS.keys() - {"demo", "details", "fresh-seeds", "affordable"}
    assert resolve(["main", "all", "main"])[0] == "main"
    assert len(resolve(["main", "all", "main"])) == len(resolve(["all"]))


def test_affordable_cells_try_a_learning_rate_only_while_none_is_enough():
    def learning_rates(scores: dict[float, float]) -> list[float]:
        """Of a cell whose trials of these rates ended with these scores; what waits is left out."""
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


def test_fresh_seeds_wait_for_the_chosen_rates_and_share_no_seed_with_those_that_chose():
    before = [*trials_of("main", "laptop"), *trials_of("dihedral", "laptop")]
    cells = list(SWEEPS["fresh-seeds"].cells(LAPTOP, finished(before)))
    trials = [trial for cell in cells for trial in cell.trials]
    assert {len(cell.trials) for cell in cells} == {5}
    assert not {trial.init_seed for trial in trials} & {trial.init_seed for trial in before}
    assert not {trial.id for trial in trials} & {trial.id for trial in before}
    assert {trial.task.name for trial in trials} == {trial.task.name for trial in before}
    waiting = [each for cell in SWEEPS["fresh-seeds"].cells(LAPTOP, Results.none()) for each in cell.trials]
    assert all(isinstance(each, Waiting) for each in waiting)


def test_fresh_seeds_try_other_rates_where_too_few_hold():
    before = [*trials_of("main", "laptop"), *trials_of("dihedral", "laptop")]
    first, *_ = SWEEPS["fresh-seeds"].cells(LAPTOP, finished(before))

    def readings(*scores: float) -> list[str]:
        """Of the first model and task, whose first fresh seeds ended with these."""
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


def test_trials_that_depend_on_results_wait_for_them_and_say_for_what(dependent):
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


def test_what_waits_is_counted_once_however_many_sweeps_ask_for_it():
    catalogue = catalogue_with("dependent", "dependent-too")
    expansion = expand(["dependent", "dependent-too"], SMOKE, Results.none(), catalogue)
    assert len(expansion.waiting) == 4
    assert set(map(tuple, expansion.waiting.values())) == {("dependent", "dependent-too")}


def test_finished_cells_are_answered_and_others_go_on_waiting(dependent):
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


def test_a_trial_made_with_a_rate_that_is_not_known_waits_as_the_rate_does():
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
