"""The paper's numbers: every accuracy of its tables as data, and which cell of which sweep stands beside each.

Accuracies are normalised: 0 is chance, 1 is perfect.
"""

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple

from orch import models, tasks
from orch.sweeps.cell import Cell
from orch.tasks import Task

VALIDATION, OOD = "validation", "ood"
SPLITS = (VALIDATION, OOD)
"""On lengths like those trained on, and at the length of the test."""

BEST_OF_RATES = "the best over three learning rates, the number of seeds not stated"
AS_IN_MAIN = "not stated for this table; taken to be Table 1's, the best over three learning rates"


@dataclass(frozen=True, slots=True)
class PublishedTable:
    name: str
    title: str
    sweep: str
    """The sweep whose cells stand beside it."""
    statistic: str
    """What its numbers are, of several runs."""
    test_length: int = 500
    note: str = ""
    """What else a reader must know of ours beside it."""


TABLES: dict[str, PublishedTable] = {
    table.name: table
    for table in (
        PublishedTable("main", "Models of equal width on three tasks (Table 1)", "main", BEST_OF_RATES),
        PublishedTable("param_matched", "Models matched by parameter count", "param-matched", AS_IN_MAIN),
        PublishedTable(
            "dihedral",
            "Dihedral groups",
            "dihedral",
            AS_IN_MAIN,
            note="The depth of Mamba and of the transformer is not published: ours have four layers, or as many as the"
            " scale allows.",
        ),
        PublishedTable("factors", "Number of factors, on state machines", "factors", AS_IN_MAIN),
        PublishedTable("additive", "Additive terms in the recurrence", "additive", AS_IN_MAIN),
        PublishedTable("additive_summary", "Additive terms, in short (figure, left)", "additive", AS_IN_MAIN),
        PublishedTable(
            "frozen_parity",
            "Parity by a frozen random network (figure, right)",
            "frozen-parity",
            "the best of three seeds and two learning rates",
            test_length=400,
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

    @property
    def model_title(self) -> str:
        """Title of the model and its variant."""
        return models.REGISTRY[self.model].title_of(self.variant)

    @property
    def task_type(self) -> type[Task]:
        return tasks.REGISTRY[self.task]


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
def published_cells(table: str | None = None) -> tuple[PublishedCell, ...]:
    """Every published accuracy, table by table; or those of one table."""
    return tuple(_cell(name, row) for name in ([table] if table else TABLES) for row in _read(name))


def _read(name: str) -> list[dict[str, str]]:
    text = resources.files("orch.analysis").joinpath("published", f"{name}.csv").read_text()
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
