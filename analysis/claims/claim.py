"""A claim of the paper: a sentence, and the conditions on named cells that it amounts to."""

from collections.abc import Sequence
from dataclasses import dataclass

from orch.analysis.claims.condition import Condition
from orch.analysis.claims.evidence import Question
from orch.analysis.published import OOD, Key

ALL_MODULI = (2, 3, 5, 10, 25, 50)
LARGER_MODULI = ALL_MODULI[1:]
ADDITIVE_MODULI = (2, 3, 5, 10, 25)
DEPTHS = ("1", "2", "4")
TERMS = ("constant", "input", "input+constant")


@dataclass(frozen=True, slots=True)
class ClaimPart:
    """Conditions of one kind: `at_least` of them must hold, and none with results may fail to."""

    title: str
    conditions: Sequence[Condition]
    at_least: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A sentence of the paper and the conditions that it amounts to."""

    id: str
    sentence: str
    parts: tuple[ClaimPart, ...]
    note: str = ""
    """Remark for readers, for example about published numbers that the claim does not cover."""
    source: str = ""
    """Authors and year of the publication that states it; empty for the paper that the project reproduces."""
    readings: tuple[str, ...] = ("",)
    """Readings of the paper, which does not say which one it means; the claim is judged by each."""
    readings_of: str = "the state"
    """The noun that the name of a reading describes."""

    @property
    def sweeps(self) -> set[str]:
        """Sweeps whose results the claim needs."""
        return {question.sweep for question in self.questions}

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that the claim is about."""
        return tuple(dict.fromkeys(question.key.task for question in self.questions))

    @property
    def questions(self) -> list[Question]:
        """Every question whose answer the claim needs."""
        return [question for part in self.parts for each in part.conditions for question in each.questions]


def ask(
    task: str,
    modulus: int,
    model: str,
    variant: str = "",
    *,
    split: str = OOD,
    sweep: str = "main",
    additive: str = "none",
    train_examples: int = 0,
) -> Question:
    """Return the question of how accurate a cell of a sweep is."""
    return Question(sweep, Key(task, model, variant, additive, modulus, train_examples), split)
