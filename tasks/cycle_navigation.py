"""Cycle navigation: steps to the left, to the right or none on a circle; where do they end?"""

from dataclasses import dataclass

from orch.tasks.task import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleNavigation(Task):
    """s_t = (s_{t-1} + x_t - 1) mod m, s_0 = 0: the symbols 0, 1, 2 are a step back, none, and a step forward.

    The positions have tokens of their own, which are predicted and never read.

    >>> task = CycleNavigation(modulus=5)
    >>> task.unread[task.fold([2, 0, 1, 0, 0]) - task.num_readable]
    '3'
    >>> task.unread[task.fold([2, 2, 2, 0]) - task.num_readable]
    '2'

    Delétang et al., 2023, "Neural Networks and the Chomsky Hierarchy", where the circle has five places.
    """

    name = "cycle_navigation"
    revision = 1
    title = "Cycle navigation"
    modulus_titles = {None: "Navigation on a cycle of {}"}
    modulus_label = "{} places"

    @property
    def slots(self) -> tuple[range, ...]:
        return (range(3),)

    @property
    def initial(self) -> int:
        return 0

    def step(self, state: int, symbol: int) -> int:
        return (state + symbol - 1) % self.modulus

    def target(self, state: int) -> int:
        return self.num_readable + state

    @property
    def unread(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.modulus)))

    def spell(self, symbol: int) -> str:
        return ("-1", "0", "+1")[symbol]
