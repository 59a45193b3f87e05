"""The space of a search, parsed from what a user writes."""

import pytest

from orch.core.errors import InvalidSettings
from orch.search.space import Dimension, parse_space


def space(*texts, fixed=None, model="factored", task="state_machine"):
    return parse_space(texts, task, model, fixed or {})


def test_a_list_of_numbers_in_order_keeps_its_order():
    (rank,) = space("rank=1,2,16").dimensions
    assert rank == Dimension("rank", (1, 2, 16))
    assert rank.is_ordered
    assert not Dimension("rank", (2, 1)).is_ordered
    assert not space("additive=none,input").dimensions[0].is_ordered


def test_a_range_of_a_decade_or_more_is_searched_by_its_logarithm():
    wide, narrow, whole = space("learning_rate=1e-4..1e-2", "init_scale=0.1..0.5", "width=8..64").dimensions
    assert (wide.is_logarithmic, narrow.is_logarithmic, whole.is_logarithmic) == (True, False, False)
    assert whole.whole
    assert whole.rounded(15.8) == 16
    assert wide.rounded(0.00123456) == 0.00123
    assert wide.rounded(0.01000001) == 0.01


def test_any_setting_of_task_model_and_trial_may_be_varied():
    found = space("modulus=2,3", "frozen=yes,no", "train_normalisation=unit,rms", "batch-size=16,64")
    assert found.names == ("modulus", "frozen", "train_normalisation", "batch_size")
    assert found["frozen"].values == (True, False)
    assert len(list(found.points())) == 16
    assert len(list(found.points({"modulus": 3}))) == 8


def test_what_a_space_prints_is_read_back_as_the_same_space():
    found = space("rank=1,2", "learning_rate=1.234567891e-4..1e-2", "additive=none,input")
    assert parse_space([str(each) for each in found.dimensions], "state_machine", "factored", {}) == found


def test_everything_wrong_is_told_at_once_with_the_remedy():
    with pytest.raises(InvalidSettings) as caught:
        space(
            "rank",
            "rnak=1,2",
            "init_seed=1,2",
            "width=8,16",
            "learning_rate=1..0.1",
            "additive=a..b",
            "curve_lengths=1,2",
            "steps=10,ten",
            "batch_size=64",
            "modulus=2,2",
            fixed={"width": 8},
        )
    messages = [
        "gives no values",
        "did you mean 'rank'",
        "--seeds",
        "both varied and fixed",
        "goes up",
        "give a list",
        "itself a list",
        "'ten' is not a whole number",
        "--batch-size 64",
        "given twice",
    ]
    assert len(caught.value.problems) == len(messages)
    for message, problem in zip(messages, caught.value.problems, strict=True):
        assert message in problem


def test_an_unknown_model_and_an_unknown_task_are_both_named():
    with pytest.raises(InvalidSettings) as caught:
        space("rank=1,2", model="factord", task="state_machin")
    assert len(caught.value.problems) == 2
