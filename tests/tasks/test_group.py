"""Word problems: groups by name are groups, and the target is the running product."""

import itertools
import random

import pytest

from orch.core.errors import InvalidSettings
from orch.tasks.group import WordProblem
from orch.tasks.notation.groups import make_group

ORDERS = {
    "Z60": 60, "S3": 6, "S4": 24, "S5": 120, "A4": 12, "A5": 60, "D6": 6, "D8": 8, "Q8": 8, "H3": 27, "A4xZ5": 60,
    "Z2xZ2xZ2": 8,
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERS)
def test_a_group_has_its_order_and_obeys_the_axioms(name):
    group, rng = make_group(name), random.Random(0)
    assert group.order == ORDERS[name] == len(set(group.names))
    everything = list(range(group.order))
    assert list(group.table[0]) == everything == [row[0] for row in group.table], "0 is the identity"
    assert all(sorted(row) == everything for row in group.table), "every element has an inverse"
    for _ in range(500):
        a, b, c = (rng.randrange(group.order) for _ in range(3))
        assert group.table[group.table[a][b]][c] == group.table[a][group.table[b][c]]


@pytest.mark.parametrize(("name", "chosen"), [(name, each) for name in ORDERS for each in make_group(name).inputs])
def test_every_named_set_of_inputs_generates_the_group(name, chosen):
    task = WordProblem(group=f"{name}:{chosen}")
    assert len(task.machine().next_state) == ORDERS[name] == task.num_classes == task.modulus
    assert task.problems() == []


def test_sets_of_inputs_are_what_their_names_say():
    sizes = {"S5": 120, "S5:swaps": 10, "S5:adjacent": 4, "S5:generators": 2, "A5:cycles": 20, "D8:reflections": 4}
    assert {name: WordProblem(group=name).num_symbols for name in sizes} == sizes
    assert [WordProblem(group="S3:adjacent").spell(symbol) for symbol in range(2)] == ["132", "213"]


def test_the_product_of_permutations_applies_the_first_input_first():
    task, rng = WordProblem(group="S4"), random.Random(0)
    permutations = list(itertools.permutations(range(4)))
    for _ in range(100):
        symbols = [rng.randrange(24) for _ in range(rng.randint(1, 9))]
        places = list(range(4))
        for symbol in symbols:
            places = [permutations[symbol][place] for place in places]
        assert permutations[task.fold(symbols)] == tuple(places)


def test_quaternions_multiply_like_quaternions():
    task = WordProblem(group="Q8")
    number = {task.spell(symbol): symbol for symbol in range(8)}
    words = {"i j": "k", "j i": "-k", "j k": "i", "k i": "j", "i i": "-1", "i j k": "-1", "-i -j": "k", "k k k k": "1"}
    assert {word: task.spell(task.fold([number[each] for each in word.split()])) for word in words} == words


def test_the_cyclic_group_with_all_inputs_is_modular_addition():
    task = WordProblem(group="Z7")
    assert (task.fold([3, 6, 5]), task.vocabulary, task.summary) == (0, 9, "Z7")
    assert task.full_title == "Word problem (Z7)"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("s5", "did you mean 'S5'?"),
        ("T5", "There are Z, S, A, D, H with a number, Q8, and products"),
        ("S5:swap", "there is no set of inputs of S5 'swap': did you mean 'swaps'?"),
        ("Z5:swaps", "there are: all, generators"),
        ("D7", "the number is the order"),
        ("S9", "the number must be 2 to 6"),
        ("Q16", "there is only Q8"),
        ("Z1", "the number must be 2 to 1000"),
        ("S6xZ2", "has 1440 elements: use one of at most 1000"),
        ("Z9999999999", "there is no group"),
        ("x".join(["Z2"] * 400), "elements: use one of at most 1000"),
        ("", "there is no group ''"),
    ],
)
def test_a_name_that_is_no_group_is_refused_with_what_there_is(name, message):
    with pytest.raises(InvalidSettings) as error:
        WordProblem(group=name)
    assert message in str(error.value)
    assert len(error.value.problems) == 1


def test_the_modulus_cannot_be_chosen():
    assert WordProblem(group="S3", modulus=7).problems() == [
        "task group has 6 classes and no setting modulus: leave modulus out"
    ]
