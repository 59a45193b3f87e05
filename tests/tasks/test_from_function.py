"""Tasks made from functions."""

import pytest

from orch.core.errors import InvalidSettings
from orch.core.settings import from_dict, to_dict
from orch.tasks.from_function import task
from orch.tasks.sampling import Sampler


@task(inputs=3, states=lambda size: size, initial=1)
def walk(state, symbol, size=5):
    """A walk on a circle."""
    return (state + symbol - 1) % size


def test_states_may_depend_on_settings_and_the_modulus_follows_them():
    few, many = walk(size=3), walk(size=8)
    assert (few.num_classes, few.unread, few.chance) == (3, (), 1 / 3)
    assert (many.modulus, many.num_classes, len(many.unread)) == (8, 8, 8)
    assert (walk().summary, many.summary) == ("size 5", "size 8")
    assert from_dict(walk, to_dict(many)) == many
    assert walk.wrapped(0, 0, size=4) == 3
    assert walk.title_of(8) == "Walk"


@pytest.mark.parametrize("size", [3, 8])
def test_samples_have_the_target_that_the_function_gives(size):
    one = walk(size=size)
    sampler = Sampler(one)
    batch = sampler.draw(sampler.generator(0), 16, 2, 10)
    for tokens, end, target in zip(
        batch.tokens_NT.tolist(), batch.end_N.tolist(), batch.target_N.tolist(), strict=True
    ):
        state = 1
        for symbol in tokens[1:end]:
            state = walk.wrapped(state, symbol, size=size)
        assert target == (state if size == 3 else one.num_readable + state)


def test_a_step_out_of_the_states_is_named():
    @task(inputs=2, states=3)
    def count(state, symbol):
        return state + symbol

    (problem,) = count().problems()
    assert problem.startswith("task count goes from state 2 with symbol 1 to 3: its states are 0 to 2")
    assert walk(modulus=3).problems() == ["task walk has no setting modulus, but 5 states: leave modulus out"]
    assert walk(size=1).problems() == ["task walk has 1 states, which leaves nothing to track: use 2 or more"]


def test_settings_that_cannot_work_are_all_named():
    with pytest.raises(InvalidSettings) as error:

        @task(inputs=2, states=2)
        def bad(state, symbol, size, table=[1], slots=3):  # noqa: B006
            return state

    assert error.value.problems == [
        "task bad has a setting size without a default: add one, as in size=3",
        "task bad has a setting table that is not plain: use a number, true or false, a text, or a tuple of one kind of"
        " these",
        "task bad has a setting slots, a name that every task uses: rename it",
    ]
    with pytest.raises(InvalidSettings, match="states depends on width, which is no setting of it"):
        task(inputs=2, states=lambda width: width)(lambda state, symbol: state)
