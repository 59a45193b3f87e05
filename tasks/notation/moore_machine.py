"""Moore machines: states with outputs and a table of next states, in the canonical form that identifies them."""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orch.core.errors import InvalidSettings

MOST_STATES = 256
MOST_SYMBOLS = 256
MOST_ENTRIES = 10_000
"""Largest number of states times symbols: a table is a setting, which every result carries."""
LIMITS = f"at most {MOST_STATES} states, {MOST_SYMBOLS} symbols and {MOST_ENTRIES:,} entries (states times symbols)"


@dataclass(frozen=True)
class MooreMachine:
    """A machine whose states and symbols are numbered. It begins in state 0."""

    next_state: tuple[tuple[int, ...], ...]
    """The state after a symbol: `next_state[state][symbol]`."""
    output: tuple[int, ...]
    """Class of each state."""

    @property
    def num_states(self) -> int:
        return len(self.next_state)

    @property
    def num_symbols(self) -> int:
        return len(self.next_state[0])

    @property
    def tells_state(self) -> bool:
        """Whether every state is its own class."""
        return self.output == tuple(range(self.num_states))

    def to_text(self) -> str:
        """Return the machine as compact JSON; outputs are left out where every state is its own class.

        >>> MooreMachine(((0, 1), (1, 0)), (0, 1)).to_text()
        '{"next":[[0,1],[1,0]]}'
        """
        output = {} if self.tells_state else {"output": self.output}
        return json.dumps({"next": self.next_state} | output, separators=(",", ":"))


@dataclass(frozen=True)
class NamedMachine:
    """A canonical machine with the names that people gave to its symbols and classes."""

    machine: MooreMachine
    symbol_names: tuple[str, ...]
    class_names: tuple[str, ...]


def canonical_machine(
    next_state: Sequence[Sequence[int]], output: Sequence[Hashable], initial: int = 0
) -> tuple[MooreMachine, list[int]]:
    """Return the smallest machine with the same outputs, and for each of its states one that it stands for.

    States that cannot be reached are left out, states that no input tells apart are merged, and the rest is numbered in
    the order in which inputs reach it, as are the outputs. So equal tasks have equal machines, however their states
    are ordered or named.

    >>> canonical_machine([[2, 1], [2, 1], [1, 2], [0, 0]], "xxyz")[0]
    MooreMachine(next_state=((1, 0), (0, 1)), output=(0, 1))
    """
    reached = _reached(next_state, initial)
    block = merge_states(
        [[reached[each] for each in next_state[state]] for state in reached], [output[s] for s in reached]
    )
    representative: dict[int, int] = {}
    for state, number in zip(reached, block, strict=True):
        representative.setdefault(number, state)
    block_of = dict(zip(reached, block, strict=True))
    merged = {number: [block_of[each] for each in next_state[state]] for number, state in representative.items()}
    order = _reached(merged, block_of[initial])
    classes: dict[Hashable, int] = {}
    for number in order:
        classes.setdefault(output[representative[number]], len(classes))
    machine = MooreMachine(
        tuple(tuple(order[each] for each in merged[number]) for number in order),
        tuple(classes[output[representative[number]]] for number in order),
    )
    return machine, [representative[number] for number in order]


def _reached(next_state: Sequence[Sequence[int]] | Mapping[int, Sequence[int]], initial: int) -> dict[int, int]:
    """Number the states that can be reached, in the order of a search in breadth."""
    numbers = {initial: 0}
    for state in (queue := [initial]):
        for each in next_state[state]:
            if each not in numbers:
                numbers[each] = len(numbers)
                queue.append(each)
    return numbers


def merge_states(next_state: Sequence[Sequence[int]], output: Sequence[Hashable]) -> list[int]:
    """Return for each state the number of its class of states that no input tells apart (Moore's refinement).

    >>> merge_states([[1, 2], [1, 2], [0, 2]], ["x", "x", "y"])
    [0, 0, 1]
    """
    block: list[Any] = list(output)
    while True:
        numbers: dict[Hashable, int] = {}
        keys = [(block[state], *(block[each] for each in row)) for state, row in enumerate(next_state)]
        refined = [numbers.setdefault(key, len(numbers)) for key in keys]
        if len(numbers) == len(set(block)):
            return refined
        block = refined


def check_size(num_states: int, num_symbols: int, called: str) -> None:
    """Raise an error if a machine is larger than a setting should be."""
    if num_states > MOST_STATES or num_symbols > MOST_SYMBOLS or num_states * num_symbols > MOST_ENTRIES:
        raise InvalidSettings([f"{called} has {num_states} states and {num_symbols} symbols: use {LIMITS}"])
