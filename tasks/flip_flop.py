"""Flip-flop: a memory of one value that is written or left alone; what does it hold?"""

from dataclasses import dataclass

from orch.core.settings import setting
from orch.tasks.task import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class FlipFlop(Task):
    """The symbols 0 to m - 1 write their value, the symbol m changes nothing; the memory begins with 0.

    >>> task = FlipFlop(modulus=2)
    >>> IGNORE = 2
    >>> task.fold([0, 1, IGNORE, IGNORE])
    1
    >>> task.fold([1, IGNORE, 0, IGNORE])
    0

    Liu et al., 2023, "Transformers Learn Shortcuts to Automata", where m is 2. The language of Liu et al., 2023,
    "Exposing Attention Glitches with Flip-Flop Language Modeling", writes each symbol as two tokens and reads at many
    places; here the end of the sequence is the only place that is read.
    """

    name = "flip_flop"
    revision = 1
    title = "Flip-flop"
    modulus_titles = {2: "Flip-flop", None: "Flip-flop of {} values"}
    modulus_label = "{} values"

    modulus: int = setting(2, "number of values, m")

    @property
    def slots(self) -> tuple[range, ...]:
        return (range(self.modulus + 1),)

    @property
    def initial(self) -> int:
        return 0

    def step(self, state: int, symbol: int) -> int:
        return state if symbol == self.modulus else symbol

    def target(self, state: int) -> int:
        return state

    def spell(self, symbol: int) -> str:
        return "ignore" if symbol == self.modulus else str(symbol)
