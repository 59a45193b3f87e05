"""The algebra of tasks against known facts and brute force, and what theory says of families of models."""

import dataclasses
import itertools
import random

import pytest

from orch.models import REGISTRY as MODELS
from orch.sweeps.experiments import atlas
from orch.tasks import REGISTRY
from orch.tasks.algebra import REFERENCES, Family, Verdict, analyse, predict
from orch.tasks.algebra.analysis import smallest_action
from orch.tasks.algebra.transformations import (
    Generated,
    compose,
    inverse,
    maximal_subgroups,
    normal_closure,
    series_length,
)
from orch.tasks.automaton import Automaton
from orch.tasks.group import WordProblem
from orch.tasks.state_machine import StateMachine

CAN, CANNOT, DEPENDS = Verdict.CAN, Verdict.CANNOT, Verdict.DEPENDS


def algebra_of(name, **settings):
    return analyse(REGISTRY[name](**settings))


@pytest.mark.parametrize(
    ("group", "order", "commutative", "nilpotent", "derived_length"),
    [
        ("Z60", 60, True, True, 1),
        ("S3", 6, False, False, 2),
        ("S4", 24, False, False, 3),
        ("S5", 120, False, False, None),
        ("S5:swaps", 120, False, False, None),
        ("A4", 12, False, False, 2),
        ("A5", 60, False, False, None),
        ("D8", 8, False, True, 2),
        ("D10:reflections", 10, False, False, 2),
        ("Q8", 8, False, True, 2),
        ("H3", 27, False, True, 2),
        ("A4xZ5", 60, False, False, 2),
        ("Z2xZ2xZ2", 8, True, True, 1),
    ],
)
def test_groups_have_their_known_algebra(group, order, commutative, nilpotent, derived_length):
    found = analyse(WordProblem(group=group))
    assert (found.num_elements, found.num_states, found.largest_subgroup) == (order, order, order)
    assert found.is_group
    assert not found.is_aperiodic
    assert (found.is_commutative, found.is_nilpotent) == (commutative, nilpotent)
    assert (found.is_solvable, found.derived_length) == (derived_length is not None, derived_length)


def test_a5_is_simple_and_a4_is_not():
    def has_normal_subgroup(name):
        actions = smallest_action(WordProblem(group=name))
        sizes = {len(normal_closure([each], actions, len(actions)).elements) for each in actions}
        return any(1 < size < len(actions) for size in sizes)

    assert not has_normal_subgroup("A5")
    assert has_normal_subgroup("A4")
    assert has_normal_subgroup("S5")


def test_q8_and_d8_differ_only_in_the_space_that_they_act_on():
    """Q8 has one element of order two, D8 has five."""

    def num_involutions(name):
        actions = smallest_action(WordProblem(group=name))
        identity = tuple(range(8))
        return sum(compose(each, each) == identity != each for each in actions)

    assert (num_involutions("Q8"), num_involutions("D8")) == (1, 5)
    quaternions, square = (analyse(WordProblem(group=name)) for name in ("Q8", "D8"))
    assert dataclasses.replace(quaternions, space=square.space) == square
    assert quaternions.space != square.space


def test_regular_tasks_have_their_known_algebra():
    parity, cycle, flip_flop = algebra_of("parity_check"), algebra_of("cycle_navigation"), algebra_of("flip_flop")
    assert (parity.is_group, parity.num_elements) == (True, 2)
    assert (cycle.is_group, cycle.num_elements, cycle.exponent) == (True, 5, 5)
    assert (flip_flop.is_group, flip_flop.is_aperiodic, flip_flop.num_elements) == (False, True, 3)
    assert flip_flop.only_resets
    even_pairs = algebra_of("even_pairs")
    assert (even_pairs.is_group, even_pairs.is_aperiodic, even_pairs.only_resets) == (False, True, False)
    # The maps x -> a x + b modulo 5: 20 with an inverse, and 5 constants from multiplying with 0.
    arithmetic = algebra_of("modular_arithmetic", modulus=5)
    assert (arithmetic.num_elements, arithmetic.largest_subgroup, arithmetic.is_solvable) == (25, 20, True)
    brackets = algebra_of("bracketed_arithmetic", modulus=3, nesting=1)
    assert (brackets.is_group, brackets.is_aperiodic, brackets.is_solvable, brackets.exponent) == (
        False,
        False,
        True,
        3,
    )
    assert algebra_of("dihedral", modulus=4) == analyse(WordProblem(group="D8:generators"))


@pytest.mark.parametrize(
    ("pattern", "star_free"),
    [
        ("(ab)*", True),
        ("(aa)*", False),
        ("(a|b)*abb", True),
        ("((a|b)(a|b))*", False),
        ("(a|b)*", None),
        ("a(ba|b)*", True),
    ],
)
def test_star_free_patterns_are_aperiodic(pattern, star_free):
    task = Automaton(pattern=pattern, alphabet="abc" if star_free is None else "")
    assert analyse(task).is_aperiodic == (star_free is not False)


def test_outputs_that_merge_states_are_merged_before_anything_is_computed():
    """A counter modulo 6 whose output is its parity is parity."""
    rows = [f"{state},{state},{(state + 1) % 6},{state % 2}" for state in range(6)]
    task = Automaton(table="\n".join(["state,stay,count,output", *rows]))
    assert (analyse(task).num_states, analyse(task).num_elements) == (2, 2)


# Brute force, from the definitions.


def brute_monoid(generators, num_states):
    found = {tuple(range(num_states))}
    while True:
        larger = found | {compose(a, b) for a in found for b in generators}
        if larger == found:
            return found
        found = larger


def brute_subgroup_orders(monoid):
    """Return the orders of the groups of units of e M e, for each idempotent e."""
    orders = []
    for e in monoid:
        if compose(e, e) == e:
            local = {compose(compose(e, x), e) for x in monoid}
            orders.append(sum(any(compose(x, y) == e == compose(y, x) for y in local) for x in local))
    return sorted(orders)


def brute_is_aperiodic(monoid):
    for x in monoid:
        power = x
        for _ in range(len(monoid)):
            power = compose(power, x)
        if compose(power, x) != power:
            return False
    return True


@pytest.mark.parametrize("seed", range(60))
def test_the_monoid_of_a_random_automaton_is_that_of_brute_force(seed):
    rng = random.Random(seed)
    num_states = rng.randint(1, 4)
    generators = [tuple(rng.randrange(num_states) for _ in range(num_states)) for _ in range(rng.randint(1, 3))]
    expected = brute_monoid(generators, num_states)
    found = Generated(generators, num_states)
    assert found.complete
    assert found.elements == expected
    assert sorted(map(len, maximal_subgroups(found.elements).values())) == brute_subgroup_orders(expected)
    identity = tuple(range(num_states))
    commutes = all(compose(a, b) == compose(b, a) for a, b in itertools.product(expected, repeat=2))
    if num_states > 1:
        reached = {row[0] for row in expected}
        if len(reached) == num_states:
            table = "\n".join(",".join(str(each[state]) for each in generators) for state in range(num_states))
            algebra = analyse(Automaton(table=table))
            assert algebra.num_elements == len(expected)
            assert algebra.is_commutative == commutes
            assert algebra.is_aperiodic == brute_is_aperiodic(expected)
            assert algebra.is_group == all(any(compose(a, b) == identity for b in expected) for a in expected)


def brute_derived_length(group):
    length = 0
    while len(group) > 1:
        found = {compose(compose(inverse(a), inverse(b)), compose(a, b)) for a in group for b in group}
        smaller = brute_monoid(found, len(next(iter(group))))
        if len(smaller) == len(group):
            return None
        group, length = smaller, length + 1
    return length


@pytest.mark.parametrize("seed", range(20))
def test_the_derived_series_of_a_random_group_is_that_of_brute_force(seed):
    rng = random.Random(seed)
    generators = [tuple(rng.sample(range(5), 5)) for _ in range(2)]
    assert series_length(generators, 5) == brute_derived_length(brute_monoid(generators, 5))


def test_a_monoid_beyond_the_limit_says_so_and_still_what_is_certain():
    found = analyse(StateMachine(modulus=10), limit=2000)
    assert (found.num_elements, found.limit) == (None, 2000)
    assert (found.is_group, found.is_commutative, found.is_aperiodic) == (False, False, False)
    assert (found.derived_length, found.largest_subgroup) == (None, None)
    counting = analyse(WordProblem(group="Z60"), limit=10)
    assert (counting.num_elements, counting.is_commutative, counting.is_solvable) == (None, True, True)
    assert predict(counting, Family.COMPLEX_DIAGONAL).verdict is CAN
    assert predict(counting, Family.SIGNED_DIAGONAL).verdict is CANNOT, "a cycle of 60 was found"
    assert predict(analyse(WordProblem(group="Z8"), limit=3), Family.SIGNED_DIAGONAL).verdict is DEPENDS
    assert analyse(WordProblem(group="S5:generators"), limit=100).is_solvable is not True


def test_a_group_that_is_not_solvable_is_found_inside_a_monoid():
    """All permutations of five states, and an input that merges two of them."""
    table = "1,1,0\n0,2,0\n2,3,2\n3,4,3\n4,0,4"
    found = analyse(Automaton(table=table))
    assert (found.is_group, found.is_solvable, found.largest_subgroup, found.num_elements) == (False, False, 120, 3125)


TABLE = {
    # task: positive, signed, rotations, complex, reflections, bounded depth
    "parity_check": (CANNOT, CAN, CAN, CAN, CAN, DEPENDS),
    "even_pairs": (CAN, CAN, CANNOT, CAN, CAN, DEPENDS),
    "flip_flop": (CAN, CAN, CANNOT, CAN, CAN, DEPENDS),
    "cycle_navigation": (CANNOT, CANNOT, CAN, CAN, CAN, DEPENDS),
    "modular_arithmetic": (CANNOT, CANNOT, CANNOT, CAN, CAN, DEPENDS),
    "Z60": (CANNOT, CANNOT, CAN, CAN, CAN, DEPENDS),
    "Z4": (CANNOT, CAN, CAN, CAN, CAN, DEPENDS),
    "S3": (CANNOT, CANNOT, CAN, CAN, CAN, DEPENDS),
    "Q8": (CANNOT, CAN, CAN, CAN, CAN, DEPENDS),
    "H3": (CANNOT, CANNOT, CAN, CAN, CAN, DEPENDS),
    "A5": (CANNOT, CANNOT, CANNOT, CANNOT, CAN, CANNOT),
    "S5:swaps": (CANNOT, CANNOT, CANNOT, CANNOT, CAN, CANNOT),
}


@pytest.mark.parametrize("name", TABLE)
def test_predictions_are_those_of_the_literature(name):
    algebra = algebra_of(name) if name in REGISTRY else analyse(WordProblem(group=name))
    # Positive reflections and fading memory have tests of their own.
    left_out = (Family.DENSE, Family.NONLINEAR, Family.POSITIVE_REFLECTIONS, Family.FADING)
    families = [each for each in Family if each not in left_out]
    assert tuple(predict(algebra, family).verdict for family in families) == TABLE[name]
    assert predict(algebra, Family.DENSE).verdict is predict(algebra, Family.NONLINEAR).verdict is CAN
    for family in Family:
        found = predict(algebra, family)
        assert found.reason
        assert all(each in REFERENCES for each in found.citation.split("; "))


def test_one_layer_of_commuting_rotations_tracks_commutative_groups_only():
    def verdict(group, layers, family=Family.COMPLEX_DIAGONAL):
        return predict(analyse(WordProblem(group=group)), family, layers=layers).verdict

    assert [verdict(group, 1) for group in ("Z60", "S3", "S4", "A5")] == [CAN, CANNOT, CANNOT, CANNOT]
    assert [verdict("S4", layers) for layers in (2, 3)] == [CANNOT, CAN]
    assert [verdict("Q8", 1, Family.SIGNED_DIAGONAL), verdict("Z2xZ2", 1, Family.SIGNED_DIAGONAL)] == [CANNOT, CAN]
    assert [verdict("Z4", layers, Family.SIGNED_DIAGONAL) for layers in (1, 2)] == [CANNOT, DEPENDS]


def test_one_layer_of_enough_reflections_tracks_a_group():
    def verdicts(group, layers=1):
        algebra = analyse(WordProblem(group=group))
        return [predict(algebra, Family.REFLECTIONS, layers, count).verdict for count in (1, 2, 4)]

    assert verdicts("Z60") == verdicts("D8") == verdicts("A5") == verdicts("S4") == [CANNOT, CAN, CAN]
    assert verdicts("S5") == verdicts("S5:generators") == [CANNOT, DEPENDS, CAN]
    assert verdicts("S5:swaps") == verdicts("D10:reflections") == verdicts("Z2xZ2") == [CAN, CAN, CAN]
    assert verdicts("S5", layers=4) == [CAN, CAN, CAN]
    assert verdicts("Q8") == [CANNOT, DEPENDS, CAN]
    assert verdicts("D8") == verdicts("Z8") == [CANNOT, CAN, CAN]


@pytest.mark.parametrize("group", ["Z6", "D8", "Q8", "A4", "S4", "S5:swaps", "S5:generators", "A5", "Z2xZ3"])
def test_a_space_is_no_smaller_than_its_reflections_and_no_larger_than_the_states(group):
    algebra = analyse(WordProblem(group=group))
    space = algebra.space
    assert space.num_reflections <= space.dimension <= algebra.num_states
    # An element that is a product of n reflections fixes all but n dimensions; of order above 2 it is no reflection.
    assert space.num_reflections > 1 or algebra.longest_period <= 2


def test_positive_reflections_do_what_a_positive_diagonal_does():
    for task in atlas.tasks():
        algebra = analyse(task)
        verdicts = {
            predict(algebra, family).verdict for family in (Family.POSITIVE_DIAGONAL, Family.POSITIVE_REFLECTIONS)
        }
        assert len(verdicts) == 1


def test_small_blocks_suffice_where_the_group_acts_on_a_small_space():
    def verdict(task, size):
        return predict(analyse(task), Family.DENSE, 1, None, size).verdict

    assert [verdict(WordProblem(group=group), 2) for group in ("Z5", "S3", "D8", "A4")] == [CAN, CAN, CAN, DEPENDS]
    assert [verdict(StateMachine(modulus=5), size) for size in (2, 8, None)] == [DEPENDS, CAN, CAN]


def test_an_input_of_several_symbols_needs_room_for_those_that_are_pending():
    algebra = algebra_of("modular_arithmetic", modulus=3)
    assert algebra.states_between_symbols > algebra.num_states == 3
    sizes = (3, algebra.states_between_symbols, None)
    assert [predict(algebra, Family.DENSE, 1, None, size).verdict for size in sizes] == [DEPENDS, CAN, CAN]
    once = algebra_of("flip_flop", modulus=2)
    twice = dataclasses.replace(once, tokens_per_input=2)
    for family in (Family.POSITIVE_DIAGONAL, Family.REFLECTIONS):
        assert [predict(each, family, 1, 1).verdict for each in (once, twice)] == [CAN, DEPENDS]


def test_factors_suffice_if_every_input_can_have_its_own():
    def verdict(task, rank):
        return predict(analyse(task), *MODELS["factored"](rank=rank).transitions).verdict

    assert [verdict(StateMachine(modulus=5), rank) for rank in (1, 4, 256)] == [DEPENDS, DEPENDS, CAN]
    assert [verdict(WordProblem(group="S5:generators"), rank) for rank in (7, 8)] == [DEPENDS, CAN]
    assert verdict(WordProblem(group="Z2xZ2"), 4) is DEPENDS, "its parts side by side have more than one dimension"


def test_a_fading_memory_tracks_only_what_the_last_inputs_decide():
    last_two = Automaton(table='{"next":[[0,1],[2,3],[0,1],[2,3]]}')
    only_resets = Automaton(table='{"next":[[0,1],[0,1]]}')
    found = [predict(analyse(task), Family.FADING) for task in (last_two, only_resets)]
    assert [each.verdict for each in found] == [CAN, CAN]
    for task in atlas.tasks():
        assert predict(analyse(task), Family.FADING, layers=6).verdict is CANNOT, task
    # Both inputs in turn keep two states apart, though each of them alone, repeated, merges all.
    hidden = Automaton(table='{"next":[[1,0],[2,0],[2,1]]}')
    assert not analyse(hidden).is_definite


def test_every_model_says_what_its_inputs_can_do_to_its_state():
    algebra = analyse(REGISTRY["parity_check"]())
    verdicts = {name: predict(algebra, *config().transitions).verdict for name, config in MODELS.items()}
    cannot = {"delta_net", "delta_product", "gated_delta_net", "lru", "mamba", "mlstm", "rg_lru"}
    assert {name for name, verdict in verdicts.items() if verdict is CANNOT} == cannot
    assert {name for name, verdict in verdicts.items() if verdict is DEPENDS} == {"transformer"}
    able = [MODELS[name](negative_eigenvalues=True) for name in ("delta_net", "gated_delta_net", "mamba")]
    assert {predict(algebra, *model.transitions).verdict for model in able} == {CAN}
