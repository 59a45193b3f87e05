"""The algebra of a task: its smallest automaton, the transition monoid of that, and what kind of monoid it is."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orch.tasks.algebra.reflections import Space, find_space
from orch.tasks.algebra.transformations import (
    Generated,
    Transformation,
    compose,
    cycle_lengths,
    is_permutation,
    maximal_subgroups,
    series_length,
)
from orch.tasks.notation.moore_machine import merge_states
from orch.tasks.task import Task

_SMALLEST_UNSOLVABLE = 60
"""Every group with fewer elements is solvable."""


@dataclass(frozen=True, kw_only=True)
class Algebra:
    """Facts about a task's transition monoid. What could not be computed within the limit is None."""

    num_states: int
    """States of the smallest automaton with the same targets."""
    num_inputs: int
    """Inputs that act differently. If a task has several slots, an input is one symbol of each."""
    num_elements: int | None
    """Size of the transition monoid, the identity included; None if it has more than `limit`."""
    limit: int
    is_group: bool
    is_commutative: bool
    is_aperiodic: bool | None
    """Whether all its subgroups have one element, which is whether its languages are star-free."""
    is_solvable: bool | None
    """Whether all its subgroups are solvable."""
    is_nilpotent: bool | None
    """None also for a monoid that is no group."""
    derived_length: int | None
    """Length of the derived series: 1 for a commutative group. None also for what is no solvable group."""
    exponent: int
    """The least number of times that takes every element of its subgroups, as far as enumerated, to their identity."""
    largest_subgroup: int | None
    """Most elements of a subgroup."""
    only_resets: bool
    """Whether each input leaves every state alone or takes all of them to one."""
    longest_period: int
    """Longest cycle of states that repeating one input ends in."""
    is_definite: bool
    """Whether the last inputs, a fixed number of them, decide the state whatever came before."""
    tokens_per_input: int
    """Symbols of an input: as many as the task has slots."""
    num_symbols: int
    """Symbols of all slots."""
    states_between_symbols: int
    """Most states that may have to be told apart after a symbol: with several slots, also by what is pending."""
    space: Space | None
    """A space that the group acts on; None for a monoid that is no group, or if it was not enumerated."""


def analyse(task: Task, limit: int | None = None) -> Algebra:
    """Compute the algebra of a task. `limit` is the largest size of a monoid that is enumerated."""
    inputs = smallest_action(task)
    num_states = len(inputs[0])
    monoid = Generated(inputs, num_states) if limit is None else Generated(inputs, num_states, limit)
    is_group = all(map(is_permutation, inputs))
    complete = monoid.complete
    chosen = monoid.generators if complete else inputs
    is_commutative = all(compose(a, b) == compose(b, a) for a, b in itertools.combinations(chosen, 2))
    subgroups = maximal_subgroups(monoid.elements)
    lengths = [math.lcm(*cycle_lengths(each)) for members in subgroups.values() for each in members]
    is_known_group = is_group and complete
    is_solvable = True if is_commutative else _solvable(subgroups, complete)
    return Algebra(
        num_states=num_states,
        num_inputs=len(inputs),
        num_elements=len(monoid.elements) if complete else None,
        limit=monoid.limit,
        is_group=is_group,
        is_commutative=is_commutative,
        is_aperiodic=max(lengths) == 1 if complete or max(lengths) > 1 else None,
        is_solvable=is_solvable,
        is_nilpotent=series_length(chosen, num_states, central=True) is not None if is_known_group else None,
        derived_length=series_length(chosen, num_states) if is_known_group else None,
        exponent=math.lcm(*lengths),
        largest_subgroup=max(map(len, subgroups.values())) if complete else None,
        only_resets=all(len(set(each)) == 1 or each == tuple(range(num_states)) for each in inputs),
        longest_period=max(map(_longest_cycle, inputs)),
        is_definite=_is_definite(inputs),
        tokens_per_input=len(task.slots),
        num_symbols=sum(map(len, task.slots)),
        states_between_symbols=max(num_states, *_states_by_slot(task)) if len(task.slots) > 1 else num_states,
        space=find_space(inputs, monoid, bool(is_solvable)) if is_known_group else None,
    )


def smallest_action(task: Task) -> list[Transformation]:
    """Return what each input does to the states of the smallest automaton with the same targets, without repetitions.

    A task with several slots is taken at the places where a sequence can end: an input is then one symbol of each slot.
    """
    numbers, rows = _explore(task)
    slots = len(task.slots)
    ends = {state: number for number, state in enumerate(state for state, phase in numbers if phase == 1 % slots)}
    columns = _columns(task, rows, list(ends), slots)
    next_state = [[ends[column[state]] for column in columns] for state in ends]
    block = merge_states(next_state, [_target(task, state) for state in ends])
    chosen = dict(zip(reversed(block), reversed(next_state), strict=True))
    actions = [tuple(block[chosen[number][column]] for number in range(len(chosen))) for column in range(len(columns))]
    return list(dict.fromkeys(actions))


def _explore(task: Task) -> tuple[list[tuple[Any, int]], dict[tuple[Any, int], list[Any]]]:
    """Return the states that inputs reach, each with the slot that is read next, and where its symbols lead."""
    slots = task.slots
    rows: dict[tuple[Any, int], list[Any]] = {}
    found = {(task.initial, 0): None}
    for state, phase in (queue := list(found)):
        rows[state, phase] = [task.step(state, symbol) for symbol in slots[phase]]
        for reached in rows[state, phase]:
            key = reached, (phase + 1) % len(slots)
            if key not in found:
                found[key] = None
                queue.append(key)
    return list(found), rows


def _columns(
    task: Task, rows: dict[tuple[Any, int], list[Any]], ends: Sequence[Any], slots: int
) -> list[dict[Any, Any]]:
    """Return, for each different input, the state to which it takes each state at which a sequence can end."""
    columns: list[tuple[Any, ...]] = [tuple(ends)]
    for step in range(slots):
        phase = (1 + step) % slots
        extended = [
            tuple(rows[state, phase][symbol] for state in column)
            for column in columns
            for symbol in range(len(task.slots[phase]))
        ]
        columns = list(dict.fromkeys(extended))
    return [dict(zip(ends, column, strict=True)) for column in columns]


def _states_by_slot(task: Task) -> list[int]:
    """Return how many states there are before each slot, without merging those that act alike."""
    numbers, _ = _explore(task)
    return list(Counter(phase for _, phase in numbers).values())


def _is_definite(inputs: Sequence[Transformation]) -> bool:
    """Return whether every sequence of some length takes all states to one."""
    if any(len(_lasting(each)) > 1 for each in inputs):
        return False
    pairs = set(itertools.combinations(range(len(inputs[0])), 2))
    while pairs:
        reached = {(each[a], each[b]) for each in inputs for a, b in pairs}
        apart = {(min(pair), max(pair)) for pair in reached if pair[0] != pair[1]}
        if apart == pairs:
            return False
        pairs = apart
    return True


def _lasting(transformation: Transformation) -> set[int]:
    """Return the states that repeating a transformation keeps coming back to."""
    image = set(range(len(transformation)))
    while len(smaller := {transformation[state] for state in image}) < len(image):
        image = smaller
    return image


def _longest_cycle(transformation: Transformation) -> int:
    """Return the longest cycle of states that repeating a transformation ends in."""
    image = _lasting(transformation)
    place = {state: number for number, state in enumerate(sorted(image))}
    return max(cycle_lengths(tuple(place[transformation[state]] for state in sorted(image))))


def _target(task: Task, state: Any) -> int | None:
    """Return the target of a state; None for the initial one, where no sequence can end."""
    try:
        return task.target(state)
    except ValueError:
        return None


def _solvable(subgroups: dict[Transformation, list[Transformation]], complete: bool) -> bool | None:
    """Return whether all subgroups are solvable; None if none was found that is not, and some may be missing."""
    seen = set()
    for members in subgroups.values():
        degree = len(members[0])
        found = Generated(members, degree)
        key = frozenset(found.elements)
        if found.complete and len(key) >= _SMALLEST_UNSOLVABLE and key not in seen:
            seen.add(key)
            if series_length(found.generators, degree) is None:
                return False
    return True if complete else None
