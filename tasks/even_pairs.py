"""Even pairs: whether the number of neighbours that differ is even, so whether the first and last symbol agree."""

from dataclasses import dataclass

from orch.tasks.task import FixedSizeTask


@dataclass(frozen=True, kw_only=True, slots=True)
class EvenPairs(FixedSizeTask):
    """The target is the number of pairs 01 and 10 modulo 2: 0 if it is even, 1 if it is odd.

    001110 has one 01 and one 10; 0101001 has three 01 and two 10:

    >>> EvenPairs().fold([0, 0, 1, 1, 1, 0])
    0
    >>> EvenPairs().fold([0, 1, 0, 1, 0, 0, 1])
    1

    Delétang et al., 2023, "Neural Networks and the Chomsky Hierarchy". The state is the first and the last symbol: the
    task sounds like counting, but it only remembers, and needs no group.
    """

    name = "even_pairs"
    revision = 1
    title = "Even pairs"

    @property
    def slots(self) -> tuple[range, ...]:
        return (range(2),)

    @property
    def initial(self) -> None:
        return None

    def step(self, state: tuple[int, int] | None, symbol: int) -> tuple[int, int]:
        return (symbol if state is None else state[0]), symbol

    def target(self, state: tuple[int, int] | None) -> int:
        return int(state is not None and state[0] != state[1])

    @property
    def num_classes(self) -> int:
        return 2
