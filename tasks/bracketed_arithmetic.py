"""Arithmetic with brackets: sums and differences modulo m, with brackets that are nested to a bounded depth."""

from dataclasses import dataclass

from orch.core.settings import setting
from orch.tasks.task import Task

OPERATORS = ("+", "-", "+(", "-(", ")+", ")-")


@dataclass(frozen=True, kw_only=True, slots=True)
class BracketedArithmetic(Task):
    """Symbols 0..m-1 are the integers; the six after them are + and -, alone or with a bracket beside them.

    Brackets that are still open at the end are closed there. A bracket that would be nested deeper than `nesting`, or
    that closes nothing, is void: its operator counts, the bracket does not.

    3 - (4 + 1) = -2 and 3 - (4 + 1) + 4 = 2 modulo 5; the last bracket of 2) - 1 closes nothing:

    >>> task = BracketedArithmetic(modulus=5)
    >>> task.fold(task.parse("3 -( 4 + 1"))
    3
    >>> task.fold(task.parse("3 -( 4 + 1 )+ 4"))
    2
    >>> task.fold(task.parse("2 )- 1"))
    1

    Delétang et al., 2023, "Neural Networks and the Chomsky Hierarchy", have brackets of any depth, which no finite
    automaton can track, write them as tokens of their own, and allow a minus before a number. Like there, the
    modulus is 5 and there is no product. The state is the value, the signs of the open brackets, and
    the sign of the next number.
    """

    name = "bracketed_arithmetic"
    revision = 1
    title = "Arithmetic with brackets"
    modulus_titles = {None: "Arithmetic with brackets modulo {}"}

    nesting: int = setting(2, "brackets that are open at once, at most")

    @property
    def slots(self) -> tuple[range, ...]:
        return range(self.modulus), range(self.modulus, self.modulus + len(OPERATORS))

    @property
    def initial(self) -> tuple[int, tuple[int, ...], int]:
        return 0, (), 1

    def step(self, state: tuple[int, tuple[int, ...], int], symbol: int) -> tuple[int, tuple[int, ...], int]:
        value, brackets, sign = state
        if symbol < self.modulus:
            return (value + sign * symbol) % self.modulus, brackets, 0
        operator = OPERATORS[symbol - self.modulus]
        if operator.startswith(")"):
            brackets = brackets[:-1]
        outside = brackets[-1] if brackets else 1
        sign = -outside if "-" in operator else outside
        if operator.endswith("(") and len(brackets) < self.nesting:
            brackets = (*brackets, sign)
        return value, brackets, sign

    def target(self, state: tuple[int, tuple[int, ...], int]) -> int:
        value, _, sign = state
        if sign:
            raise ValueError("the expression ends in an operator")
        return value

    def spell(self, symbol: int) -> str:
        return OPERATORS[symbol - self.modulus] if symbol >= self.modulus else str(symbol)

    def parse(self, expression: str) -> list[int]:
        """Symbols of an expression whose words are separated by spaces."""
        return [self.modulus + OPERATORS.index(word) if word in OPERATORS else int(word) for word in expression.split()]

    def problems(self) -> list[str]:
        found = Task.problems(self)
        if not 0 <= self.nesting <= 6:
            found.append(f"nesting {self.nesting} is not possible: use 0 to 6")
        return found
