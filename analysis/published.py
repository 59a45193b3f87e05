"""The paper's numbers: every accuracy of its tables as data, and which cell of which sweep stands beside each.

Accuracies are normalised: 0 is chance, 1 is perfect.
"""

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple

from orchestrator.cell import Cell

VALIDATION, OOD = "validation", "ood"
SPLITS = (VALIDATION, OOD)
"""On lengths like those trained on, and at the length of the test."""

BEST_OF_RATES = "best over learning rates"
"""Three rates; over how many seeds is not stated."""


@dataclass(frozen=True, slots=True)
class PublishedTable:
    name: str
    title: str
    sweep: str
    """The sweep whose cells stand beside it."""
    statistic: str
    """What its numbers are, of several runs."""


TABLES: dict[str, PublishedTable] = {
    table.name: table
    for table in (
        PublishedTable("main", "Models of equal width on three tasks (Table 1)", "main", BEST_OF_RATES),
        PublishedTable("param_matched", "Models matched by parameter count", "param-matched", BEST_OF_RATES),
        PublishedTable("dihedral", "Dihedral groups", "dihedral", BEST_OF_RATES),
        PublishedTable("factors", "Number of factors, on state machines", "factors", BEST_OF_RATES),
        PublishedTable("additive", "Additive terms in the recurrence", "additive", BEST_OF_RATES),
        PublishedTable("additive_summary", "Additive terms, in short (figure, left)", "additive", BEST_OF_RATES),
        PublishedTable(
            "frozen_parity",
            "Parity by a frozen random network, at length 400 (figure, right)",
            "frozen-parity",
            "best of three seeds and two learning rates",
        ),
    )
}


class Key(NamedTuple):
    """What a number is about. What a table leaves out is the same for all of its numbers."""

    task: str
    model: str
    variant: str = ""
    additive: str = "none"
    modulus: int = 2
    train_examples: int = 0
    train_length: int = 10


@dataclass(frozen=True, slots=True)
class PublishedCell:
    table: str
    key: Key
    split: str
    accuracy: float


_LEFT_OUT: dict[str, dict[str, str]] = {
    "dihedral": {"task": "dihedral"},
    "factors": {"task": "state_machine"},
    "frozen_parity": {"task": "modular_addition", "model": "block_diagonal", "split": OOD},
}
_RENAMED = {"rank": "variant"}
# The summary says only whether there are additive terms; its numbers are those with both terms, all fifteen of them.
_VALUES = {"yes": "input+constant", "no": "none"}


@functools.cache
def published_cells() -> tuple[PublishedCell, ...]:
    """Every published accuracy, table by table."""
    return tuple(_cell(name, row) for name in TABLES for row in _read(name))


def _read(name: str) -> list[dict[str, str]]:
    text = resources.files("analysis").joinpath("published", f"{name}.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


def _cell(table: str, row: Mapping[str, str]) -> PublishedCell:
    values = _LEFT_OUT.get(table, {}) | {
        _RENAMED.get(name, name): _VALUES.get(text, text) for name, text in row.items()
    }
    accuracy, split = float(values.pop("accuracy")), values.pop("split")
    numbers = {name: int(values[name]) for name in ("modulus", "train_examples", "train_length") if name in values}
    return PublishedCell(table, Key(**(values | numbers)), split, accuracy)  # type: ignore[arg-type]


def key_of(cell: Cell) -> Key:
    """What a cell of ours is about, in the words of the published tables."""
    trial = cell.example
    return Key(
        task=trial.task.name,
        model=trial.model.name,
        variant=cell.variant,
        additive=getattr(trial.model, "additive", "none"),
        modulus=trial.task.modulus,
        train_examples=trial.train_examples,
        train_length=trial.max_inputs,
    )
