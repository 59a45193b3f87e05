"""Parity check: whether the ones in a string of zeros and ones are even in number."""

from dataclasses import dataclass

from orch.tasks.task import FixedSizeTask


@dataclass(frozen=True, kw_only=True, slots=True)
class ParityCheck(FixedSizeTask):
    """The target is the number of ones modulo 2: 0 if it is even, 1 if it is odd.

    >>> ParityCheck().fold([1, 0, 1, 1])
    1
    >>> ParityCheck().fold([1, 1, 0])
    0

    Delétang et al., 2023, "Neural Networks and the Chomsky Hierarchy". It is `modular_addition` modulo 2 under the name
    that it has there; trials of the two have different ids.
    """

    name = "parity_check"
    revision = 1
    title = "Parity check"

    @property
    def slots(self) -> tuple[range, ...]:
        return (range(2),)

    @property
    def initial(self) -> int:
        return 0

    def step(self, state: int, symbol: int) -> int:
        return state ^ symbol

    def target(self, state: int) -> int:
        return state

    @property
    def num_classes(self) -> int:
        return 2
