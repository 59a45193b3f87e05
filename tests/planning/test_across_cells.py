"""Which trials of different cells are packed together."""

from collections.abc import Iterable
from typing import Any

import pytest

from orch.planning.across_cells import LARGEST_ON_A_CPU, group_trials, padded, shared_program
from orch.planning.estimate import Basis
from orch.planning.pack_size import PACES, memory
from orch.planning.plan import PlannedTrial, TrialState
from orch.sweeps.trial import Trial, make_trial
from tests.new_process import modules_imported


def plan(trials: Iterable[Trial]) -> list[PlannedTrial]:
    facts = {"sweeps": ("test",), "others": (), "state": TrialState.TO_DO, "seconds": 1.0, "basis": Basis.ASSUMED}
    return [PlannedTrial(id=trial.id, trial=trial, **facts) for trial in trials]


def cell(model: str, task: str, modulus: int, size: int = 9, **settings: Any) -> list[Trial]:
    shared = {"width": 16, "modulus": modulus} | settings
    return [make_trial(task, model, init_seed=seed, data_seed=seed, **shared) for seed in range(size)]


def sizes(trials: Iterable[Trial], device: str = "cpu", most: int | None = None) -> list[int]:
    return sorted(len(pack) for pack in group_trials(plan(trials), device, most))


def three_cells(model: str, size: int = 9, **settings: Any) -> list[Trial]:
    cells = (("modular_addition", 3), ("modular_addition", 5), ("state_machine", 5))
    return [trial for task, modulus in cells for trial in cell(model, task, modulus, size, **settings)]


def test_narrow_trials_of_three_cells_make_one_pack_of_27():
    assert sizes(three_cells("rnn")) == [27]
    assert LARGEST_ON_A_CPU == 27


@pytest.mark.parametrize("model", ["rnn", "lstm", "block_diagonal", "bilinear"])
def test_wide_or_compiled_trials_stay_in_their_cells_on_a_cpu(model):
    assert max(sizes(three_cells(model, width=64))) <= 9


@pytest.mark.parametrize("model", ["rnn", "block_diagonal", "mamba", "transformer"])
def test_cells_share_packs_on_a_gpu(model):
    assert max(sizes(three_cells(model, width=64), "cuda")) >= 18


def test_cells_of_few_trials_are_joined():
    trials = three_cells("rnn", size=3)
    assert sizes(trials) == [9]
    assert sizes(trials, most=4) != [9]
    assert max(sizes(trials, most=4)) <= 4
    assert sizes(trials, most=1) == [1] * 9


def test_every_trial_is_in_exactly_one_pack():
    trials = three_cells("rnn", size=11) + cell("lstm", "dihedral", 4, 5)
    packs = group_trials(plan(trials), "cpu")
    assert sorted(each.id for pack in packs for each in pack) == sorted(trial.id for trial in trials)


def test_neighbours_in_a_pack_have_similar_vocabularies():
    trials = [trial for modulus in (50, 2, 48, 3) for trial in cell("rnn", "modular_addition", modulus, 9)]
    for pack in group_trials(plan(trials), "cpu", most=18):
        assert {each.trial.task.modulus for each in pack} in ({2, 3}, {48, 50}, {2}, {3}, {48}, {50})


def test_padding_that_costs_more_than_it_gains_keeps_cells_apart():
    trials = [trial for modulus in (2, 200) for trial in cell("bilinear", "modular_addition", modulus, 9, width=128)]
    packs = group_trials(plan(trials), "cuda")
    assert all(len({each.trial.task for each in pack}) == 1 for pack in packs)


def test_on_a_cpu_trials_with_sequences_of_other_lengths_or_other_arithmetic_stay_apart():
    addition, arithmetic = cell("rnn", "modular_addition", 5, 1)[0], cell("rnn", "modular_arithmetic", 5, 1)[0]
    assert shared_program(addition, "cpu") != shared_program(arithmetic, "cpu")
    assert shared_program(addition, "cuda") == shared_program(arithmetic, "cuda")
    few, many = (cell("block_diagonal", "modular_addition", modulus, 1)[0] for modulus in (14, 15))
    assert shared_program(few, "cpu") != shared_program(many, "cpu"), "16 and 17 readable tokens"
    few, many = (cell("factored", "modular_addition", modulus, 1, rank=64)[0] for modulus in (5, 100))
    assert shared_program(few, "cpu") != shared_program(many, "cpu"), "multiplied out, and not"


def test_a_pack_across_cells_fits_in_memory_with_its_padding():
    trials = [trial for modulus in (5, 60) for trial in cell("bilinear", "modular_addition", modulus, 20, width=256)]
    for pack in group_trials(plan(trials), "cuda"):
        assert memory(padded([each.trial for each in pack]), len(pack), "cuda") <= PACES["gpu"].memory


def test_a_padded_trial_has_room_for_each():
    trials = [cell("rnn", "dihedral", 8, 1)[0], cell("rnn", "modular_arithmetic", 3, 1)[0]]
    room = padded(trials)
    assert room.vocabulary == (20, 8)
    assert room.task.num_tokens(10) == 21
    assert padded(trials[:1]) is trials[0]


def test_grouping_needs_no_torch():
    assert modules_imported("import orch.planning.across_cells", {"torch"}) == set()
