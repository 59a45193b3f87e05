"""Modular arithmetic: integers with operators +, -, * between them, applied from left to right modulo m."""

from dataclasses import dataclass

from orch.tasks.task import Task

OPERATORS = "+-*"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModularArithmetic(Task):
    """The state is the value so far and the operator that waits for its right side, if any.

    Symbols 0..m-1 are the integers, m, m+1, m+2 are + - *.

    >>> task = ModularArithmetic(modulus=20)
    >>> task.fold(task.parse("3 * 9 - 17 + 6 + 12"))
    8
    """

    name = "modular_arithmetic"
    revision = 1
    title = "Modular arithmetic"
    modulus_titles = {None: "Arithmetic modulo {}"}

    @property
    def slots(self) -> tuple[range, ...]:
        return range(self.modulus), range(self.modulus, self.modulus + len(OPERATORS))

    @property
    def initial(self) -> tuple[int, str]:
        return 0, "+"

    def step(self, state: tuple[int, str], symbol: int) -> tuple[int, str]:
        value, operator = state
        if symbol >= self.modulus:
            return value, OPERATORS[symbol - self.modulus]
        if operator == "+":
            value += symbol
        elif operator == "-":
            value -= symbol
        else:
            value *= symbol
        return value % self.modulus, ""

    def target(self, state: tuple[int, str]) -> int:
        value, operator = state
        if operator:
            raise ValueError(f"the expression ends in {operator!r}")
        return value

    def spell(self, symbol: int) -> str:
        return OPERATORS[symbol - self.modulus] if symbol >= self.modulus else str(symbol)

    def parse(self, expression: str) -> list[int]:
        """Return the symbols of an expression written with spaces."""
        return [self.modulus + OPERATORS.index(word) if word in OPERATORS else int(word) for word in expression.split()]
