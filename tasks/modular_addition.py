"""Modular addition: the sum of the inputs modulo m. Parity is modulus 2."""

from dataclasses import dataclass

from orch.tasks.task import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class ModularAddition(Task):
    """s_t = (s_{t-1} + x_t) mod m, s_0 = 0: the cyclic group Z_m.

    >>> ModularAddition(modulus=20).fold([8, 0, 12, 18, 5])
    3
    >>> ModularAddition(modulus=2).fold([1, 0, 1, 1])
    1
    """

    name = "modular_addition"
    revision = 1
    title = "Modular addition"
    modulus_titles = {2: "Parity", None: "Addition modulo {}"}

    @property
    def slots(self) -> tuple[range, ...]:
        return (range(self.modulus),)

    @property
    def initial(self) -> int:
        return 0

    def step(self, state: int, symbol: int) -> int:
        return (state + symbol) % self.modulus

    def target(self, state: int) -> int:
        return state
