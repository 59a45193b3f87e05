"""Transformations of numbered states: the monoid that they generate, its subgroups, and what groups are made of.

A transformation is a tuple with the image of each state. In a product, the left factor acts first.
"""

from collections.abc import Iterable, Sequence

Transformation = tuple[int, ...]

MOST_ELEMENTS = 100_000
"""Monoids with more elements are not enumerated."""
MOST_ENTRIES = 10_000_000
"""Nor are those whose transformations have more entries altogether."""


def compose(first: Transformation, then: Transformation) -> Transformation:
    """Return the transformation that applies one and then the other.

    >>> compose((1, 2, 0), (0, 0, 2))
    (0, 2, 0)
    """
    return tuple(map(then.__getitem__, first))


def is_permutation(transformation: Transformation) -> bool:
    return len(set(transformation)) == len(transformation)


def inverse(permutation: Transformation) -> Transformation:
    found = [0] * len(permutation)
    for place, image in enumerate(permutation):
        found[image] = place
    return tuple(found)


def num_swaps(permutation: Transformation) -> int:
    """Return how many swaps of two states make up a permutation: its states less its cycles.

    >>> num_swaps((1, 2, 0, 3))
    2
    """
    return len(permutation) - len(cycle_lengths(permutation))


def cycle_lengths(permutation: Transformation) -> list[int]:
    found, seen = [], set()
    for start in range(len(permutation)):
        length, place = 0, start
        while place not in seen:
            seen.add(place)
            place = permutation[place]
            length += 1
        if length:
            found.append(length)
    return found


class Generated:
    """The products of some transformations, with the identity: a monoid, or a group if all are permutations."""

    def __init__(self, generators: Iterable[Transformation], num_states: int, limit: int = MOST_ELEMENTS):
        identity = tuple(range(num_states))
        self.limit = min(limit, MOST_ENTRIES // max(1, num_states))
        self.elements = {identity}
        self.generators: list[Transformation] = []
        """The generators that are not products of the ones before them."""
        self.complete = True
        """False if enumeration stopped at the limit."""
        for generator in generators:
            if generator not in self.elements:
                self._add(generator)
            if not self.complete:
                break

    def _add(self, generator: Transformation) -> None:
        self.generators.append(generator)
        queue: list[Transformation] = []
        for element in list(self.elements):
            self._see(compose(element, generator), queue)
        for element in queue:
            for each in self.generators:
                self._see(compose(element, each), queue)
            if len(self.elements) > self.limit:
                self.complete = False
                return

    def _see(self, element: Transformation, queue: list[Transformation]) -> None:
        if element not in self.elements:
            self.elements.add(element)
            queue.append(element)


def maximal_subgroups(elements: Iterable[Transformation]) -> dict[Transformation, list[Transformation]]:
    """Return the maximal subgroups of a monoid, by their identities, as permutations of the identity's image.

    They are the group H-classes: x belongs to one if it permutes its own image, and the identity is then the power of x
    that fixes that image.

    >>> maximal_subgroups([(0, 1, 2), (1, 0, 1), (0, 1, 0), (2, 2, 2)])
    {(0, 1, 2): [(0, 1, 2)], (0, 1, 0): [(1, 0), (0, 1)], (2, 2, 2): [(0,)]}
    """
    found: dict[Transformation, list[Transformation]] = {}
    for element in elements:
        image = sorted(set(element))
        back = {element[state]: state for state in image}
        if len(back) == len(image):
            idempotent = tuple(back[state] for state in element)
            place = {state: number for number, state in enumerate(image)}
            found.setdefault(idempotent, []).append(tuple(place[element[state]] for state in image))
    return found


def normal_closure(seeds: Iterable[Transformation], generators: Sequence[Transformation], degree: int) -> Generated:
    """Return the smallest normal subgroup that has the seeds, of the group that permutations generate."""
    pairs = [(inverse(each), each) for each in generators]
    chosen: list[Transformation] = []
    group = Generated([], degree)
    queue = list(seeds)
    for seed in queue:
        if seed not in group.elements:
            chosen.append(seed)
            group = Generated(chosen, degree)
            queue += [compose(compose(back, seed), each) for back, each in pairs]
    return group


def commutators(left: Sequence[Transformation], right: Sequence[Transformation]) -> list[Transformation]:
    return [compose(compose(inverse(a), inverse(b)), compose(a, b)) for a in left for b in right]


def series_length(generators: Sequence[Transformation], degree: int, central: bool = False) -> int | None:
    """Return the length of the derived series of a group down to the identity; None if it never gets there.

    So a group is solvable if this is a number. With `central` it is the lower central series, and the group is
    nilpotent if this is a number.

    >>> S3 = [(1, 0, 2), (1, 2, 0)]
    >>> series_length(S3, 3), series_length(S3, 3, central=True)
    (2, None)
    """
    group = Generated(generators, degree)
    length = 0
    while len(group.elements) > 1:
        others = generators if central else group.generators
        smaller = normal_closure(commutators(group.generators, others), generators, degree)
        if len(smaller.elements) == len(group.elements):
            return None
        group, length = smaller, length + 1
    return length
