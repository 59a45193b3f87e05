"""Dihedral groups: a value on a circle and a direction. `advance` moves by one, `reverse` changes the direction."""

from dataclasses import dataclass

from orch.tasks.task import Task

ADVANCE, REVERSE = 0, 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Dihedral(Task):
    """delta((s, d), advance) = ((s + d) mod m, d); delta((s, d), reverse) = (s, -d); the initial state is (0, +1).

    The target is the whole state, with one token for each of the 2m states. These tokens are predicted and never read.

    >>> task = Dihedral(modulus=5)
    >>> state = task.initial
    >>> for symbol in (ADVANCE, REVERSE, ADVANCE, ADVANCE):
    ...     state = task.step(state, symbol)
    >>> state
    (4, -1)
    >>> task.unread[task.fold([ADVANCE, REVERSE, ADVANCE, ADVANCE]) - task.num_readable]
    '4-'
    """

    name = "dihedral"
    revision = 1
    title = "Dihedral group"
    modulus_titles = {None: "Dihedral group of {}"}

    @property
    def slots(self) -> tuple[range, ...]:
        return (range(2),)

    @property
    def initial(self) -> tuple[int, int]:
        return 0, 1

    def step(self, state: tuple[int, int], symbol: int) -> tuple[int, int]:
        value, direction = state
        if symbol == REVERSE:
            return value, -direction
        return (value + direction) % self.modulus, direction

    def target(self, state: tuple[int, int]) -> int:
        value, direction = state
        return self.num_readable + 2 * value + (direction < 0)

    @property
    def num_classes(self) -> int:
        return 2 * self.modulus

    @property
    def unread(self) -> tuple[str, ...]:
        return tuple(f"{value}{sign}" for value in range(self.modulus) for sign in "+-")

    def spell(self, symbol: int) -> str:
        return "reverse" if symbol == REVERSE else "advance"
