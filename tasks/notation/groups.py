"""Finite groups by name: `Z60`, `S5`, `A5`, `D8`, `Q8`, `H3`, and products such as `A4xZ5`."""

import difflib
import functools
import itertools
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from orch.core.errors import InvalidSettings

MOST_ELEMENTS = 1000
"""Largest order of a group: its elements are tokens, and its table is kept in memory."""
_FACTOR = re.compile(r"([A-Z])([0-9]{1,4})")
EXAMPLES = ("Z60", "S3", "S4", "S5", "A4", "A5", "D8", "Q8", "H3", "A4xZ5")
"""Names that an error shows. The letters stand for families, so there are many more."""


@dataclass(frozen=True, eq=False)
class Group:
    """A finite group. Elements are numbered; 0 is the identity."""

    names: tuple[str, ...]
    """Written form of each element."""
    table: tuple[tuple[int, ...], ...]
    """`table[a][b]` is the product a b: of two permutations, a is applied first."""
    inputs: Mapping[str, tuple[int, ...]]
    """Named sets of elements, each of which generates the group."""

    @property
    def order(self) -> int:
        return len(self.names)


@functools.lru_cache(maxsize=32)
def make_group(name: str) -> Group:
    """Return the group of this name.

    >>> make_group("S5").order, make_group("A4xZ5").order, make_group("H3").order
    (120, 60, 27)
    >>> make_group("S6xS5")
    Traceback (most recent call last):
    orch.core.errors.InvalidSettings: group S6xS5 has 86400 elements: use one of at most 1000
    """
    families = [_family(factor, name) for factor in name.split("x")]
    order = math.prod(size for size, _ in families)
    if order > MOST_ELEMENTS:
        raise InvalidSettings([f"group {name} has {order} elements: use one of at most {MOST_ELEMENTS}"])
    if order < 2:
        raise InvalidSettings([f"group {name} has one element, which leaves nothing to track: use a larger one"])
    return functools.reduce(_direct_product, (make() for _, make in families))


def _family(factor: str, name: str) -> tuple[int, Callable[[], Group]]:
    """Return the order of a factor and a function that makes it, or raise an error that names what there is."""
    found = _FACTOR.fullmatch(factor)
    if found is None or found[1] not in _FAMILIES:
        nearest = difflib.get_close_matches(name.upper().replace("X", "x"), EXAMPLES, n=1, cutoff=0)[0]
        raise InvalidSettings(
            [
                f"there is no group {name!r}: did you mean {nearest!r}? There are Z, S, A, D, H with a number, Q8, and"
                f" products, such as {', '.join(EXAMPLES)}"
            ]
        )
    size = int(found[2])
    order_of, make, problem = _FAMILIES[found[1]]
    if wrong := problem(size):
        raise InvalidSettings([f"group {factor}: {wrong}"])
    return order_of(size), lambda: make(size)


def _tabulate(
    elements: Iterable[Hashable],
    times: Callable[[Any, Any], Hashable],
    spell: Callable[[Any], str],
    inputs: Mapping[str, Iterable[Hashable]],
) -> Group:
    """Number the elements, the identity first, and multiply each pair once."""
    listed = list(elements)
    index = {element: number for number, element in enumerate(listed)}
    table = tuple(tuple(index[times(a, b)] for b in listed) for a in listed)
    sets = {name: tuple(index[element] for element in chosen) for name, chosen in inputs.items()}
    everything = {"all": tuple(range(len(listed)))}
    return Group(tuple(map(spell, listed)), table, MappingProxyType(everything | sets))


def _cyclic(size: int) -> Group:
    return _tabulate(range(size), lambda a, b: (a + b) % size, str, {"generators": [1 % size]})


def _compose(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the permutation that applies `a` first and then `b`."""
    return tuple(b[place] for place in a)


def _num_moved(permutation: tuple[int, ...]) -> int:
    return sum(place != number for number, place in enumerate(permutation))


def _is_even(permutation: tuple[int, ...]) -> bool:
    return sum(a > b for a, b in itertools.combinations(permutation, 2)) % 2 == 0


def _spell_permutation(permutation: tuple[int, ...]) -> str:
    return "".join(str(place + 1) for place in permutation)


def _symmetric(size: int) -> Group:
    elements = list(itertools.permutations(range(size)))
    swaps = [each for each in elements if _num_moved(each) == 2]
    adjacent = [each for each in swaps if any(each[i] == i + 1 and each[i + 1] == i for i in range(size - 1))]
    first, rotation = (1, 0, *range(2, size)), (*range(1, size), 0)
    generators = dict.fromkeys([first, rotation])
    return _tabulate(
        elements, _compose, _spell_permutation, {"generators": generators, "swaps": swaps, "adjacent": adjacent}
    )


def _alternating(size: int) -> Group:
    elements = [each for each in itertools.permutations(range(size)) if _is_even(each)]
    cycles = [each for each in elements if _num_moved(each) == 3]
    # The cycles (1 2 k) generate: every cycle of three is a product of these.
    generators = [each for each in cycles if each[0] == 1 and each[1] not in (0, 1)]
    return _tabulate(elements, _compose, _spell_permutation, {"generators": generators, "cycles": cycles})


def _dihedral(size: int) -> Group:
    """Return the symmetries of a polygon with `size` / 2 corners: a rotation, then a reflection or none."""
    corners = size // 2

    def times(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return (a[0] + (-b[0] if a[1] else b[0])) % corners, a[1] ^ b[1]

    elements = [(turn, mirrored) for mirrored in (0, 1) for turn in range(corners)]
    reflections = [each for each in elements if each[1]]
    return _tabulate(
        elements,
        times,
        lambda each: f"r{each[0]}" + ("s" if each[1] else ""),
        {"generators": [(1, 0), (0, 1)], "reflections": reflections},
    )


def _quaternion(size: int) -> Group:
    """Return the unit quaternions 1, i, j, k and their negatives, as a sign and one of 1, i, j, k."""
    # Units multiply as numbers 0 to 3 do under exclusive or; these pairs change the sign.
    negative = {(1, 1), (2, 2), (3, 3), (2, 1), (3, 2), (1, 3)}

    def times(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] ^ b[0] ^ ((a[1], b[1]) in negative), a[1] ^ b[1]

    elements = [(sign, unit) for sign in (0, 1) for unit in range(4)]
    return _tabulate(elements, times, lambda each: "-" * each[0] + "1ijk"[each[1]], {"generators": [(0, 1), (0, 2)]})


def _heisenberg(size: int) -> Group:
    """Return the 3 x 3 matrices with ones on the diagonal, a and b above it and c in the corner, modulo `size`."""

    def times(x: tuple[int, int, int], y: tuple[int, int, int]) -> tuple[int, int, int]:
        return (x[0] + y[0]) % size, (x[1] + y[1]) % size, (x[2] + y[2] + x[0] * y[1]) % size

    elements = list(itertools.product(range(size), repeat=3))
    return _tabulate(elements, times, lambda each: ".".join(map(str, each)), {"generators": [(1, 0, 0), (0, 1, 0)]})


def _direct_product(left: Group, right: Group) -> Group:
    def times(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
        return left.table[x[0]][y[0]], right.table[x[1]][y[1]]

    generators = [(each, 0) for each in left.inputs["generators"]] + [(0, each) for each in right.inputs["generators"]]
    return _tabulate(
        itertools.product(range(left.order), range(right.order)),
        times,
        lambda each: f"{left.names[each[0]]},{right.names[each[1]]}",
        {"generators": generators},
    )


def _at_least(least: int, most: int) -> Callable[[int], str]:
    def problem(size: int) -> str:
        return "" if least <= size <= most else f"the number must be {least} to {most}"

    return problem


def _dihedral_problem(size: int) -> str:
    if size % 2 or not 6 <= size <= MOST_ELEMENTS:
        return (
            f"the number is the order, twice that of the polygon's corners: use an even one from 6 to {MOST_ELEMENTS}"
        )
    return ""


_FAMILIES: Mapping[str, tuple[Callable[[int], int], Callable[[int], Group], Callable[[int], str]]] = {
    "Z": (lambda size: size, _cyclic, _at_least(2, MOST_ELEMENTS)),
    "S": (math.factorial, _symmetric, _at_least(2, 6)),
    "A": (lambda size: math.factorial(size) // 2, _alternating, _at_least(3, 6)),
    "D": (lambda size: size, _dihedral, _dihedral_problem),
    "Q": (lambda size: size, _quaternion, lambda size: "" if size == 8 else "there is only Q8"),
    "H": (lambda size: size**3, _heisenberg, _at_least(2, 10)),
}
"""For each letter: the order, how the group is made, and what is wrong with a number."""
