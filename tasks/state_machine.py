"""Random state machines: m states, m symbols, and for each state a random permutation that maps symbols to states."""

import functools
import random
from dataclasses import dataclass

from orch.core.settings import setting
from orch.tasks.task import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class StateMachine(Task):
    """The first symbol is the initial state; after it, q_t = delta(q_{t-1}, x_t) = pi_q(x).

    >>> table = ((3, 0, 4, 5, 1, 2), (2, 1, 0, 3, 5, 4), (5, 0, 2, 1, 3, 4),
    ...          (5, 0, 1, 2, 4, 3), (1, 0, 3, 4, 2, 5), (5, 4, 0, 3, 1, 2))
    >>> functools.reduce(lambda state, symbol: table[state][symbol], [4, 1, 2, 5, 5])
    2

    There is one machine per modulus and `machine_seed`, shared by all models, learning rates and seeds, because at
    small moduli the machine decides which models can learn it. Seed 0 draws subtraction modulo 3 for three states,
    which commutes and never forgets. Seed 1 draws machines that do neither at every modulus above 2, as most seeds do.
    """

    name = "state_machine"
    revision = 1
    title = "State machine"
    modulus_titles = {None: "State machine, {} states"}
    modulus_label = "{} states"
    most_modulus = 1000
    """A machine has a table of as many rows and columns."""

    machine_seed: int = setting(1, "draws the machine, one per modulus")

    @property
    def slots(self) -> tuple[range, ...]:
        return (range(self.modulus),)

    @property
    def initial(self) -> None:
        return None

    @property
    def table(self) -> tuple[tuple[int, ...], ...]:
        """`table[state][symbol]` is the next state."""
        return draw_table(self.modulus, self.machine_seed)

    def step(self, state: int | None, symbol: int) -> int:
        return symbol if state is None else self.table[state][symbol]

    def target(self, state: int | None) -> int:
        if state is None:
            raise ValueError("a machine that has read nothing is in no state")
        return state

    def problems(self) -> list[str]:
        found = Task.problems(self)
        if self.machine_seed < 0:
            found.append(f"machine_seed {self.machine_seed} is negative: use 0 or more")
        return found


@functools.lru_cache(maxsize=256)
def draw_table(modulus: int, machine_seed: int) -> tuple[tuple[int, ...], ...]:
    """Draw a machine that remembers its state.

    A machine whose rows are all equal forgets its state at every step and is drawn again. At modulus 2 that is half of
    all machines; the published row for two states fits only the other half.
    """
    rng = random.Random(f"state_machine/{modulus}/{machine_seed}")
    while True:
        table = tuple(tuple(sorted(range(modulus), key=lambda _: rng.random())) for _ in range(modulus))
        if len(set(table)) > 1:
            return table
