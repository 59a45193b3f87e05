"""Spaces that a finite group acts on: how many dimensions they need, and how many reflections make up an element.

A finite group can be tracked by orthogonal matrices if it acts faithfully on a space. Each element is then a product of
reflections (Cartan and Dieudonné). Smaller spaces are looked for in the places where the groups of word problems have
them; what is found is enough, and is not always the least.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orch.tasks.algebra.transformations import Generated, Transformation, compose, cycle_lengths, num_swaps

MOST_SEARCHED = 120
"""Groups with more elements are not searched for subgroups, on whose cosets they would act."""
ROTATIONS_OF_SPACE = (12, 24)
"""Orders at which a group without a centre is that of the tetrahedron (A4) or the cube (S4)."""
QUATERNIONS = 8
"""Order of the only group with one element of order 2 that does not commute and has so few elements."""
DODECAHEDRON = 60
"""Order of A5, the only group of its order that is not solvable."""


@dataclass(frozen=True)
class Space:
    """A space that a group acts on, faithfully and by orthogonal matrices, or several side by side."""

    dimension: int
    """Dimensions of the largest part: an independent block, or head, may have each."""
    num_reflections: int
    """Reflections that make up an input, at most, in one part."""


def find_space(inputs: Sequence[Transformation], group: Generated, is_solvable: bool) -> Space:
    """Return the space with the fewest reflections that is found for a group of permutations."""
    elements = sorted(group.elements)
    found = [Space(len(inputs[0]) - 1, max(map(num_swaps, inputs)))]
    orders = {each: _order(each) for each in elements}
    if all(compose(a, b) == compose(b, a) for a in group.generators for b in group.generators):
        # A product of cyclic groups, each of which turns a plane of its own, or changes a sign.
        turns = any(orders[each] > 2 for each in elements)
        found.append(Space(2 if turns else 1, 2 if turns else 1))
    elif turning := _half_turned(elements, orders):
        found.append(Space(2, 2 if any(each in turning and orders[each] > 1 for each in inputs) else 1))
    centre = [each for each in elements if all(compose(each, g) == compose(g, each) for g in group.generators)]
    of_solid = len(elements) in ROTATIONS_OF_SPACE and len(centre) == 1
    if of_solid or (len(elements) == DODECAHEDRON and not is_solvable):
        found.append(Space(3, 2))
    elif len(elements) == QUATERNIONS and sum(order == 2 for order in orders.values()) == 1 and len(centre) == 2:
        found.append(Space(4, 4))  # they multiply each other, in four dimensions
    if len(elements) <= MOST_SEARCHED:
        found.append(_on_cosets(inputs, elements))
    return min(found, key=lambda each: (each.num_reflections, each.dimension))


def _order(permutation: Transformation) -> int:
    return math.lcm(*cycle_lengths(permutation))


def _half_turned(elements: Sequence[Transformation], orders: dict[Transformation, int]) -> set[Transformation]:
    """Return the rotations of a dihedral group: a cyclic half outside which all elements have order 2; else nothing."""
    half = len(elements) // 2
    for each in elements:
        if orders[each] == half:
            rotations = Generated([each], len(each)).elements
            if all(orders[other] == 2 for other in elements if other not in rotations):
                return rotations
    return set()


def _on_cosets(inputs: Sequence[Transformation], elements: Sequence[Transformation]) -> Space:
    """Return the action on the fewest cosets of a subgroup with two generators, as permutations of these cosets."""
    place = {each: number for number, each in enumerate(elements)}
    product = [[place[compose(a, b)] for b in elements] for a in elements]
    identity = place[tuple(range(len(elements[0])))]
    best = [identity]
    seen: set[frozenset[int]] = set()
    for a in range(len(elements)):
        for b in range(a + 1):
            subgroup = _closure((a, b), product, identity)
            if len(best) < len(subgroup) < len(elements) and subgroup not in seen:
                seen.add(subgroup)
                if _has_no_core(subgroup, product, identity):
                    best = sorted(subgroup)
    coset = {product[member][each]: -1 for member in best for each in range(len(elements))}
    count = 0
    for each in range(len(elements)):
        if coset[each] < 0:
            for member in best:
                coset[product[member][each]] = count
            count += 1
    chosen = {number: each for each, number in coset.items()}
    moves = [tuple(coset[product[chosen[number]][place[each]]] for number in range(count)) for each in inputs]
    return Space(count - 1, max(map(num_swaps, moves)))


def _closure(generators: Sequence[int], product: list[list[int]], identity: int) -> frozenset[int]:
    found, queue = {identity}, [identity]
    for element in queue:
        for each in generators:
            reached = product[element][each]
            if reached not in found:
                found.add(reached)
                queue.append(reached)
    return frozenset(found)


def _has_no_core(subgroup: frozenset[int], product: list[list[int]], identity: int) -> bool:
    """Return whether the conjugates of a subgroup have only the identity in common."""
    core = set(subgroup)
    for each in range(len(product)):
        back = product[each].index(identity)
        core &= {product[product[back][member]][each] for member in subgroup}
        if len(core) == 1:
            return True
    return False
