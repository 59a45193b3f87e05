"""What a task is: a vocabulary, an initial state, a step, and a target read off the final state."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

State = Hashable


class Machine(NamedTuple):
    """A task's fold, tabulated: state 0 is the initial one."""

    next_state: list[list[int]]
    """`next_state[state][token]`, for every token that can be read; [BOS] and [EOI] change nothing."""
    target: list[int]
    """The token to predict if the sequence ended in this state."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Read `[BOS] inputs… [EOI]`, predict one token at `[EOI]`.

    Tokens are numbered: the input symbols, then [BOS], [EOI], then targets that are never read (if any).
    """

    modulus: int

    name: ClassVar[str]
    revision: ClassVar[int]
    """Raise it whenever the same trial would see other sequences or other targets: it is part of a trial's id."""

    @property
    def slots(self) -> tuple[range, ...]:
        """The symbols each input position draws from, repeating. A sequence of n inputs ends on its n-th first slot."""
        raise NotImplementedError

    @property
    def initial(self) -> Any:
        raise NotImplementedError

    def step(self, state: Any, symbol: int) -> Any:
        raise NotImplementedError

    def target(self, state: Any) -> int:
        """The token that names `state`."""
        raise NotImplementedError

    @property
    def num_classes(self) -> int:
        """How many tokens can be the target."""
        return self.modulus

    @property
    def unread(self) -> tuple[str, ...]:
        """Names of the tokens that are only ever predicted."""
        return ()

    def spell(self, symbol: int) -> str:
        """How an input symbol is written."""
        return str(symbol)

    @property
    def example(self) -> tuple[int, ...]:
        """A few input symbols, for listings."""
        return tuple(slot[(3 * n + 1) % len(slot)] for n in range(3) for slot in self.slots)[: self.num_symbols_for(3)]

    # Derived from the above; a task does not override these.

    @property
    def num_symbols(self) -> int:
        return max(slot.stop for slot in self.slots)

    @property
    def bos(self) -> int:
        return self.num_symbols

    @property
    def eoi(self) -> int:
        return self.num_symbols + 1

    @property
    def num_readable(self) -> int:
        """Tokens that a model may be given: the symbols, [BOS] and [EOI]. As a token it stands for padding."""
        return self.num_symbols + 2

    @property
    def vocabulary(self) -> int:
        """All tokens: what embeddings and heads are sized by."""
        return self.num_readable + len(self.unread)

    @property
    def chance(self) -> float:
        return 1 / self.num_classes

    def num_symbols_for(self, num_inputs: int) -> int:
        """Symbols in a sequence of `num_inputs` inputs: operators between inputs count as symbols, not as inputs."""
        return (num_inputs - 1) * len(self.slots) + 1

    def num_tokens(self, num_inputs: int) -> int:
        """Tokens a model reads for `num_inputs` inputs, [BOS] and [EOI] included."""
        return self.num_symbols_for(num_inputs) + 2

    def fold(self, symbols: Sequence[int]) -> int:
        """The target of a sequence: the definition that everything faster is tested against."""
        state = self.initial
        for symbol in symbols:
            state = self.step(state, symbol)
        return self.target(state)

    def normalise(self, accuracy: float) -> float:
        """0 at chance, 1 at perfect: the paper's scale."""
        return (accuracy - self.chance) / (1 - self.chance)

    def denormalise(self, normalised: float) -> float:
        """The plain share of right answers again."""
        return normalised * (1 - self.chance) + self.chance

    def machine(self) -> Machine:
        """Tabulate the fold by visiting every state that inputs can reach."""
        index: dict[State, int] = {self.initial: 0}
        rows: list[dict[int, int]] = [{}]
        frontier: list[tuple[State, int]] = [(self.initial, 0)]
        seen = set(frontier)
        while frontier:
            state, slot = frontier.pop()
            following = (slot + 1) % len(self.slots)
            for symbol in self.slots[slot]:
                reached = self.step(state, symbol)
                if reached not in index:
                    index[reached] = len(rows)
                    rows.append({})
                rows[index[state]][symbol] = index[reached]
                if (reached, following) not in seen:
                    seen.add((reached, following))
                    frontier.append((reached, following))
        tokens = range(self.num_readable)
        next_state = [[row.get(token, here) for token in tokens] for here, row in enumerate(rows)]
        return Machine(next_state, [self._target_or_zero(state) for state in index])

    def _target_or_zero(self, state: State) -> int:
        """States in which no sequence can end (nothing read yet, an operator pending) have no target to ask for."""
        try:
            return self.target(state)
        except ValueError:
            return 0

    def problems(self) -> list[str]:
        """Everything wrong with these settings, each as a sentence that names the remedy."""
        if self.modulus < 2:
            return [f"modulus {self.modulus} leaves nothing to track: use 2 or more"]
        return []
