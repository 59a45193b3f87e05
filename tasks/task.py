"""Base class of tasks: a vocabulary, an initial state, a step, and a target read off the final state."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from orch.core.settings import full_summary, setting

State = Hashable


class Machine(NamedTuple):
    """Table of a task's fold. State 0 is the initial one."""

    next_state: list[list[int]]
    """`next_state[state][token]` for every token that can be read; [BOS] and [EOI] change nothing."""
    target: list[int]
    """Token to predict if the sequence ends in this state."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A model reads `[BOS] inputs… [EOI]` and predicts one token at `[EOI]`.

    Tokens are numbered: the input symbols, then [BOS], [EOI], then targets that are never read (if any).
    """

    modulus: int = setting(5, "number of values, m")

    name: ClassVar[str]
    revision: ClassVar[int]
    """Raise it whenever the same trial would see other sequences or other targets: it is part of a trial's id."""
    title: ClassVar[str] = ""
    """Name in tables and figures. If empty, it is `name` with spaces for underscores."""
    modulus_titles: ClassVar[Mapping[int | None, str]] = {}
    """Titles at one modulus, such as "Parity"; None is for all other moduli, with {} for the modulus."""
    modulus_label: ClassVar[str] = "mod {}"
    """Label of one modulus under the task's title, with {} for the modulus."""
    has_modulus: ClassVar[bool] = True
    """False if the modulus cannot be chosen, because it follows from the other settings."""
    most_modulus: ClassVar[int] = 100_000
    example_settings: ClassVar[Mapping[str, Any]] = {}
    """Settings of an example, for listings and tests, if the task has settings without a default."""

    @classmethod
    def title_of(cls, modulus: int | None = None) -> str:
        """Return the title of the task in general, or at one modulus."""
        title = cls.title or cls.name.replace("_", " ").capitalize()
        if modulus is None or not cls.has_modulus:
            return title
        template = cls.modulus_titles.get(modulus, cls.modulus_titles.get(None))
        return template.format(modulus) if template else f"{title} (m = {modulus})"

    @property
    def summary(self) -> str:
        """Description of these settings among those of the task, such as "modulo 5", for listings and figures.

        A task of one's own may return whatever its readers call it, such as "S3" for the group with six elements.
        """
        return f"modulo {self.modulus}"

    @property
    def full_summary(self) -> str:
        """The summary, and every other setting that differs from its default: no two settings share one label."""
        return full_summary(self, "modulus")

    @property
    def full_title(self) -> str:
        """Title of the task with these settings, for tables."""
        return f"{self.title_of()} ({self.summary})" if self._has_own_summary else self.title_of(self.modulus)

    @property
    def heading(self) -> str:
        """Description of these settings below the task's title, for the columns of figures."""
        if self._has_own_summary:
            return self.summary
        return self.modulus_titles.get(self.modulus, "m = {}").format(self.modulus)

    @property
    def _has_own_summary(self) -> bool:
        return type(self).summary is not Task.summary

    @classmethod
    def at_modulus(cls, modulus: int) -> "Task":
        """Make the task with this modulus, if it has one, and its example's or default settings, for listings."""
        return cls(**({"modulus": modulus} if cls.has_modulus else {}), **cls.example_settings)

    @property
    def own_name(self) -> str:
        """Name of a task that a user's file makes with settings of its own, such as "vending"; empty if it has none.

        Commands that read the file take it in place of the task's name and these settings.
        """
        return ""

    @property
    def slots(self) -> tuple[range, ...]:
        """Symbols that each position of the input draws from, in turn. Only the first slot counts as an input."""
        raise NotImplementedError

    @property
    def initial(self) -> Any:
        """State before the first input."""
        raise NotImplementedError

    def step(self, state: Any, symbol: int) -> Any:
        """State after reading `symbol` in `state`."""
        raise NotImplementedError

    def target(self, state: Any) -> int:
        """Token that names `state`; a ValueError if no sequence can end there."""
        raise NotImplementedError

    @property
    def num_classes(self) -> int:
        """Number of tokens that can be the target."""
        return self.modulus

    @property
    def unread(self) -> tuple[str, ...]:
        """Names of the tokens that are predicted and never read."""
        return ()

    def spell(self, symbol: int) -> str:
        """Written form of an input symbol."""
        return str(symbol)

    @property
    def example(self) -> tuple[int, ...]:
        """A few input symbols, for listings."""
        return tuple(slot[(3 * n + 1) % len(slot)] for n in range(3) for slot in self.slots)[: self.num_symbols_for(3)]

    # The rest is derived from the above. A task does not override it.

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
        """Number of tokens that can be read: the symbols, [BOS] and [EOI]. The number itself stands for padding."""
        return self.num_symbols + 2

    @property
    def vocabulary(self) -> int:
        """Number of all tokens, which is the size of embeddings and heads."""
        return self.num_readable + len(self.unread)

    @property
    def chance(self) -> float:
        """Accuracy of guessing."""
        return 1 / self.num_classes

    def num_symbols_for(self, num_inputs: int) -> int:
        """Number of symbols in a sequence of `num_inputs` inputs, with the operators between inputs."""
        return (num_inputs - 1) * len(self.slots) + 1

    def num_tokens(self, num_inputs: int) -> int:
        """Number of tokens in a sequence of `num_inputs` inputs, [BOS] and [EOI] included."""
        return self.num_symbols_for(num_inputs) + 2

    def fold(self, symbols: Sequence[int]) -> int:
        """Target of a sequence. Faster ways to compute it are tested against this one."""
        state = self.initial
        for symbol in symbols:
            state = self.step(state, symbol)
        return self.target(state)

    def normalise(self, accuracy: float) -> float:
        """Accuracy on the paper's scale, where 0 is chance and 1 is perfect."""
        return (accuracy - self.chance) / (1 - self.chance)

    def denormalise(self, normalised: float) -> float:
        """Share of right answers, from an accuracy on the paper's scale."""
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
        """Target of a state, or 0 for one in which no sequence can end, such as after an operator."""
        try:
            return self.target(state)
        except ValueError:
            return 0

    def problems(self) -> list[str]:
        """List everything wrong with these settings, each as a sentence that names the remedy."""
        if self.modulus < 2:
            return [f"modulus {self.modulus} leaves nothing to track: use 2 or more"]
        if self.modulus > self.most_modulus:
            return [
                f"modulus {self.modulus} is too many values for task {self.name}: use at most {self.most_modulus:,}"
            ]
        return []


@dataclass(frozen=True, kw_only=True, slots=True)
class FixedSizeTask(Task):
    """A task whose modulus is its number of classes, which follows from its other settings."""

    modulus: int = setting(0, "number of classes, which follows from the other settings")

    has_modulus = False

    def __post_init__(self) -> None:
        if self.modulus == 0:
            object.__setattr__(self, "modulus", self.num_classes)

    @property
    def summary(self) -> str:
        """Empty if the task has no settings."""
        return ""

    @property
    def full_title(self) -> str:
        """Title of the task with these settings, for tables."""
        return f"{self.title_of()} ({self.summary})" if self.summary else self.title_of()

    @property
    def num_classes(self) -> int:
        raise NotImplementedError

    def problems(self) -> list[str]:
        if self.modulus != self.num_classes:
            return [f"task {self.name} has {self.num_classes} classes and no setting modulus: leave modulus out"]
        return []
