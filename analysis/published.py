"""The published numbers: every accuracy of the paper's tables, and the key that matches our cells with them.

Accuracies are normalised: 0 is chance, 1 is perfect.
"""

import csv
import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple

from orch import models, tasks
from orch.sweeps.cell import Cell
from orch.tasks import Task

VALIDATION, OOD = "validation", "ood"
"""The two splits: accuracy at the lengths trained on, and at the test length."""

BEST_OF_RATES = "the best over three learning rates, the number of seeds not stated"
AS_IN_MAIN = "not stated for this table; taken to be Table 1's, the best over three learning rates"


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A table of the paper."""

    name: str
    title: str
    sweep: str
    """Sweep whose cells are compared with its numbers."""
    statistic: str
    """The way its numbers summarise several runs."""
    test_length: int = 500
    note: str = ""
    """Differences between our cells and the published ones; empty if there are none."""


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


SWEEPS_IN_ORDER = (
    *("main", "data-efficiency", "additive", "frozen-parity", "angles"),
    *("param-matched", "dihedral", "factors"),
)
"""Sweeps of the paper in the order in which it reports them, the second line in its appendix."""


class Key(NamedTuple):
    """The model, task and settings of a number. A setting that a table leaves out is the same for all its numbers."""

    task: str
    model: str
    variant: str = ""
    additive: str = "none"
    modulus: int = 2
    train_examples: int = 0
    train_length: int = 10
    problem: str = ""
    """Settings of a task that has no modulus, such as the name of a group."""

    @property
    def model_title(self) -> str:
        """Title of the model and its variant."""
        return models.REGISTRY[self.model].title_of(self.variant)

    @property
    def task_type(self) -> type[Task]:
        return tasks.REGISTRY[self.task]


@dataclass(frozen=True, slots=True)
class PublishedCell:
    """A published accuracy."""

    table: str
    key: Key
    split: str
    accuracy: float


_CONSTANTS: dict[str, dict[str, str]] = {
    "dihedral": {"task": "dihedral"},
    "factors": {"task": "state_machine"},
    "frozen_parity": {"task": "modular_addition", "model": "block_diagonal", "split": OOD},
}
_RENAMED = {"rank": "variant"}
# The summary table says only whether there are additive terms; all of its fifteen numbers with terms have both.
_VALUES = {"yes": "input+constant", "no": "none"}


def tables_of(sweeps: Collection[str]) -> list[str]:
    """Return the names of the tables whose numbers are compared with these sweeps."""
    return [table.name for table in TABLES.values() if table.sweep in sweeps]


@functools.cache
def published_cells(table: str | None = None) -> tuple[PublishedCell, ...]:
    """Return every published accuracy, table by table, or those of one table."""
    return tuple(_cell(name, row) for name in ([table] if table else TABLES) for row in _read(name))


def _read(name: str) -> list[dict[str, str]]:
    text = resources.files("orch.analysis").joinpath("published", f"{name}.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


def _cell(table: str, row: Mapping[str, str]) -> PublishedCell:
    values = _CONSTANTS.get(table, {}) | {
        _RENAMED.get(name, name): _VALUES.get(text, text) for name, text in row.items()
    }
    accuracy, split = float(values.pop("accuracy")), values.pop("split")
    numbers = {name: int(values[name]) for name in ("modulus", "train_examples", "train_length") if name in values}
    return PublishedCell(table, Key(**(values | numbers)), split, accuracy)  # type: ignore[arg-type]


def key_of(cell: Cell) -> Key:
    """Return the key of the published numbers that one of our cells is compared with."""
    trial = cell.example
    return Key(
        task=trial.task.name,
        model=trial.model.name,
        variant=cell.variant,
        additive=getattr(trial.model, "additive", "none"),
        modulus=trial.task.modulus,
        train_examples=trial.train_examples,
        train_length=trial.max_inputs,
        problem="" if trial.task.has_modulus else trial.task.summary,
    )
