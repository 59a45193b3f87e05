"""Regular expressions as minimal automata: concatenation, |, *, +, ?, classes, any symbol (.) and parentheses."""

from collections.abc import Set
from dataclasses import dataclass, field

from orch.core.errors import InvalidSettings
from orch.tasks.notation.moore_machine import MOST_STATES, NamedMachine, canonical_machine, check_size

LONGEST = 200
DEEPEST = 30
MOST_SUBSETS = 4096
"""Largest number of states before equivalent ones are merged."""
_SPECIAL = "|*+?().[]\\"


@dataclass
class _Parser:
    """Builds a nondeterministic automaton by recursive descent. Its states are numbers, its moves are lists."""

    pattern: str
    alphabet: str
    place: int = 0
    depth: int = 0
    moves: list[list[tuple[str, int]]] = field(default_factory=list)
    """For each state, the symbols that leave it and where to; the empty text is a move that reads nothing."""

    def new(self) -> int:
        self.moves.append([])
        return len(self.moves) - 1

    def fail(self, problem: str) -> InvalidSettings:
        return InvalidSettings([f"pattern {self.pattern!r}, character {self.place + 1}: {problem}"])

    @property
    def ahead(self) -> str:
        return self.pattern[self.place : self.place + 1]

    def take(self) -> str:
        taken = self.ahead
        self.place += 1
        return taken

    def alternatives(self) -> tuple[int, int]:
        """Read branches with | between them, and return where they begin and end."""
        start, end = self.new(), self.new()
        while True:
            first, last = self.sequence()
            self.moves[start].append(("", first))
            self.moves[last].append(("", end))
            if self.ahead != "|":
                return start, end
            self.take()

    def sequence(self) -> tuple[int, int]:
        start = end = self.new()
        while self.ahead and self.ahead not in "|)":
            first, last = self.repeated()
            self.moves[end].append(("", first))
            end = last
        return start, end

    def repeated(self) -> tuple[int, int]:
        start, end = self.single()
        while self.ahead and self.ahead in "*+?":
            operator = self.take()
            outer_start, outer_end = self.new(), self.new()
            self.moves[outer_start].append(("", start))
            self.moves[end].append(("", outer_end))
            if operator != "?":
                self.moves[end].append(("", start))
            if operator != "+":
                self.moves[outer_start].append(("", outer_end))
            start, end = outer_start, outer_end
        return start, end

    def single(self) -> tuple[int, int]:
        if self.ahead == "(":
            self.take()
            if self.ahead == "?":
                raise self.fail("(? begins no group here: write ( alone, or \\? for the symbol")
            self.depth += 1
            if self.depth > DEEPEST:
                raise self.fail(f"brackets are nested too deeply: use at most {DEEPEST} levels")
            inner = self.alternatives()
            if self.ahead != ")":
                raise self.fail("a bracket is not closed: write ) after it")
            self.take()
            self.depth -= 1
            return inner
        if self.ahead in "*+?":
            raise self.fail(f"there is nothing before {self.ahead} to repeat: write a symbol there, or \\{self.ahead}")
        if self.ahead in "{}":
            raise self.fail("counts in braces are not possible: repeat the symbol itself, or write \\{")
        if self.ahead == "]":
            raise self.fail("] closes no class: write \\]")
        if self.ahead in "^$":
            raise self.fail(f"a pattern matches whole inputs as it is: leave {self.ahead} out, or write \\{self.ahead}")
        start, end = self.new(), self.new()
        symbols = self.symbol_class() if self.ahead == "[" else self.symbol(any_symbol=True)
        self.moves[start] += [(symbol, end) for symbol in sorted(symbols)]
        return start, end

    def symbol(self, any_symbol: bool = False) -> Set[str]:
        taken = self.take()
        if taken == "." and any_symbol:
            return set(self.alphabet)
        if taken == "\\":
            taken = self.take()
            if taken.isalnum():
                self.place -= 1
                raise self.fail(f"\\{taken} is no shorthand here: write the symbols themselves, as in [0-9]")
        if not taken or taken not in self.alphabet:
            self.place -= 1
            raise self.fail(f"{taken!r} is not in the alphabet {self.alphabet!r}: add it there, or leave it out")
        return {taken}

    def symbol_class(self) -> Set[str]:
        """Read a class such as [abc], [a-c] or [^a]."""
        self.take()
        negated = self.ahead == "^"
        if negated:
            self.take()
        found: set[str] = set()
        while self.ahead != "]":
            if not self.ahead:
                raise self.fail("a class is not closed: write ] after it")
            (first,) = self.symbol()
            last = first
            if self.ahead == "-" and self.pattern[self.place + 1 : self.place + 2] not in ("]", ""):
                self.take()
                (last,) = self.symbol()
                if last < first:
                    raise self.fail(f"the range {first}-{last} is empty: write {last}-{first}")
            found |= {symbol for symbol in self.alphabet if first <= symbol <= last}
        self.take()
        return set(self.alphabet) - found if negated else found

    def closure(self, states: Set[int]) -> frozenset[int]:
        """Return the states that can be reached from some others without reading."""
        found = set(states)
        for state in (queue := list(states)):
            for symbol, reached in self.moves[state]:
                if not symbol and reached not in found:
                    found.add(reached)
                    queue.append(reached)
        return frozenset(found)


def letters(pattern: str) -> str:
    """Return the symbols that a pattern names, in order, which are its alphabet unless another is given.

    >>> letters("(ab)*[d-f]?")
    'abdef'
    """
    found: set[str] = set()
    place = 0
    while place < len(pattern):
        symbol = pattern[place]
        if symbol == "\\":
            place += 1
            found.add(pattern[place : place + 1])
        elif symbol == "-" and 0 < place < len(pattern) - 1 and pattern[place - 1] < pattern[place + 1] != "]":
            found |= {chr(code) for code in range(ord(pattern[place - 1]), ord(pattern[place + 1]))}
        elif symbol not in _SPECIAL + "^{}":
            found.add(symbol)
        place += 1
    return "".join(sorted(found - {""}))


def compile_pattern(pattern: str, alphabet: str = "") -> NamedMachine:
    """Return the smallest machine that tells, after each symbol, whether the whole input so far matches the pattern.

    The symbols are those of the alphabet in its order. Classes are numbered as inputs reach them, so that of the empty
    input comes first.

    >>> compile_pattern("(ab)*").machine
    MooreMachine(next_state=((1, 2), (2, 0), (2, 2)), output=(0, 1, 1))
    >>> compile_pattern("(ab)*").class_names
    ('match', 'no match')
    """
    if not pattern or len(pattern) > LONGEST:
        raise InvalidSettings([f"a pattern of {len(pattern)} characters is not possible: use 1 to {LONGEST}"])
    alphabet = alphabet or letters(pattern)
    if not alphabet or len(set(alphabet)) < len(alphabet):
        raise InvalidSettings(
            [f"alphabet {alphabet!r} of pattern {pattern!r} is empty or names a symbol twice: fix it"]
        )
    check_size(1, len(alphabet), f"pattern {pattern!r}")
    parser = _Parser(pattern, alphabet)
    start, end = parser.alternatives()
    if parser.ahead:
        raise parser.fail(") closes no bracket: remove it, or write \\)")
    numbers = {parser.closure({start}): 0}
    table: list[list[int]] = []
    for subset in (queue := list(numbers)):
        row = []
        for symbol in alphabet:
            moved = {reached for state in subset for read, reached in parser.moves[state] if read == symbol}
            reached = parser.closure(moved)
            if reached not in numbers:
                numbers[reached] = len(numbers)
                queue.append(reached)
            row.append(numbers[reached])
        table.append(row)
        if len(numbers) > MOST_SUBSETS:
            raise InvalidSettings([f"pattern {pattern!r} needs more than {MOST_SUBSETS} states: use a simpler one"])
    matches = [end in subset for subset in numbers]
    machine, _ = canonical_machine(table, matches)
    if max(machine.output) == 0:
        raise InvalidSettings([f"pattern {pattern!r} matches everything or nothing over {alphabet!r}: use another"])
    if machine.num_states > MOST_STATES:
        raise InvalidSettings(
            [f"pattern {pattern!r} needs {machine.num_states} states: use one of at most {MOST_STATES}"]
        )
    return NamedMachine(machine, tuple(alphabet), ("match", "no match") if matches[0] else ("no match", "match"))
