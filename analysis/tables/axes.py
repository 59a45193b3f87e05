"""The axes of each published table: its sections, rows, column groups and columns."""

from collections.abc import Callable
from dataclasses import dataclass

from orch.analysis.published import OOD, TABLES, VALIDATION, PublishedCell

Label = Callable[[PublishedCell], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Axes:
    """The labels of a table's rows and columns, computed from its numbers."""

    headings: tuple[str, ...]
    """Headings over the labels of the rows."""
    labels: Callable[[PublishedCell, str], tuple[str, ...]]
    """Returns the labels of a number's row, given the name of our reading of the paper."""
    section: Label
    """Returns the section that a number's row belongs to."""
    group: Label
    """Returns the heading of the columns that a number's column belongs to."""
    columns: str
    """Name of what distinguishes the columns of a group, such as the modulus."""
    column: Label


def split_name(number: PublishedCell) -> str:
    """Return the heading of the split that a number is about."""
    return {VALIDATION: "Validation, length 2–10", OOD: f"Length {TABLES[number.table].test_length}"}[number.split]


def additive_name(additive: str) -> str:
    """Return the name of additive terms, with spaces."""
    return additive.replace("+", " + ")


def _model(number: PublishedCell) -> str:
    return number.key.model_title


def _task(number: PublishedCell) -> str:
    return number.key.task_type.title_of()


def _task_and_parity(number: PublishedCell) -> str:
    return number.key.task_type.modulus_titles.get(number.key.modulus, _task(number))


def _modulus(number: PublishedCell) -> str:
    return str(number.key.modulus)


_MODELS = Axes(
    headings=("Model",),
    labels=lambda number, reading: (_model(number),),
    section=_task,
    group=split_name,
    columns="Modulus or states",
    column=_modulus,
)
_ADDITIVE = Axes(
    headings=("Model", "Additive terms", "State"),
    labels=lambda number, reading: (_model(number), additive_name(number.key.additive), reading),
    section=lambda number: "",
    group=_task_and_parity,
    columns="Modulus or states",
    column=_modulus,
)

AXES: dict[str, Axes] = {
    "main": _MODELS,
    "param_matched": _MODELS,
    "dihedral": _MODELS,
    "factors": Axes(
        headings=("Factors",),
        labels=lambda number, reading: (number.key.variant or "full",),
        section=_task,
        group=split_name,
        columns="States",
        column=_modulus,
    ),
    "additive": _ADDITIVE,
    "additive_summary": _ADDITIVE,
    "frozen_parity": Axes(
        headings=("Additive terms", "State"),
        labels=lambda number, reading: (additive_name(number.key.additive), reading),
        section=lambda number: "",
        group=lambda number: f"{number.key.train_examples} training examples",
        columns="Training length",
        column=lambda number: str(number.key.train_length),
    ),
}
