"""A part of a table to look at: filtered by a text, sorted by a column, one page of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orch.analysis.table_formats import column_names, is_number, plain_rows, readable
from orch.core.errors import UnknownName
from orch.store.deduplication import numbers

ROWS_PER_PAGE = 100
MOST_CHARACTERS = 160
"""Characters of a cell that the page shows; a download has them all."""

SHOWN: Mapping[str, Sequence[str]] = {
    "trials": (
        "trial_id", "task", "modulus", "model", "learning_rate", "init_seed", "validation_accuracy", "ood_accuracy",
        "steps_trained", "stop_reason", "seconds", "finished_at",
    ),
    "cells": (
        "task", "modulus", "model", "variant", "num_done", "learning_rate", "num_seeds", "ood_best", "ood_mean",
        "ood_spread", "validation_best", "ood_best_trial",
    ),
    "attempts": ("trial_id", "event", "at", "worker", "device", "outcome", "step", "error_signature", "error_message"),
    "comparison": (
        "table_name", "task", "modulus", "model", "variant", "split", "published", "ours", "difference", "status",
        "best_trial",
    ),
    "plan": ("trial_id", "sweeps", "label", "learning_rate", "init_seed", "state", "seconds"),
}  # fmt: skip
"""Columns that a view shows at first; a link shows all."""

NEWEST_FIRST: Mapping[str, str] = {"trials": "finished_at", "attempts": "at"}
"""The column by which a view is sorted at first, the newest row on top."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows and columns of a table that a reader asked to see."""

    filter: str = ""
    """A text that a row must contain in one of its columns; several words must all be found."""
    sort: str = ""
    """A column, or empty for the order of the table."""
    descending: bool = False
    page: int = 1
    all_columns: bool = False

    @classmethod
    def read(cls, query: Mapping[str, str], view: str = "") -> "Selection":
        """Read a selection of a view from the parameters of an address. What cannot be meant is left out."""
        if view in NEWEST_FIRST and "sort" not in query:
            query = {**query, "sort": NEWEST_FIRST[view], "order": "down"}
        page = query.get("page", "1")
        return cls(
            filter=query.get("filter", "").strip(),
            sort=query.get("sort", ""),
            descending=query.get("order") == "down",
            page=max(1, int(page)) if page.isdecimal() and len(page) < 9 else 1,
            all_columns=query.get("columns") == "all",
        )

    def parameters(self, **changes: object) -> str:
        """Return the parameters of the address of this selection, with some of its fields changed."""
        new = replace(self, **changes)  # type: ignore[arg-type]
        given = {
            "filter": new.filter,
            "sort": new.sort,
            "order": "down" if new.sort and new.descending else "",
            "page": str(new.page) if new.page > 1 else "",
            "columns": "all" if new.all_columns else "",
        }
        return urlencode({name: value for name, value in given.items() if value})

    def sorted_by(self, name: str) -> str:
        """Return the parameters that sort by a column, the other way around if it is sorted by it already."""
        return self.parameters(sort=name, descending=self.sort == name and not self.descending, page=1)


@dataclass(frozen=True, slots=True)
class TablePage:
    """One page of a table as texts."""

    selection: Selection
    names: list[str]
    numbers: list[bool]
    rows: list[list[str]]
    num_rows: int
    """Rows of all pages."""

    @property
    def num_pages(self) -> int:
        return max(1, -(-self.num_rows // ROWS_PER_PAGE))

    @property
    def first(self) -> int:
        return (self.selection.page - 1) * ROWS_PER_PAGE + 1


def select(table: pa.Table, selection: Selection) -> pa.Table:
    """Return the rows that a selection asks for, in its order, on all pages."""
    table = table.rename_columns(column_names(table))
    if selection.filter:
        table = table.take(numbers(_matching(table, selection.filter.casefold().split())))
    if selection.sort:
        if selection.sort not in table.column_names:
            raise UnknownName("column", selection.sort, table.column_names)
        if not pa.types.is_nested(table.schema.field(selection.sort).type):
            order = "descending" if selection.descending else "ascending"
            table = table.take(pc.sort_indices(table, sort_keys=[(selection.sort, order)]))
    return table


def _matching(table: pa.Table, words: Sequence[str]) -> np.ndarray:
    """Return the numbers of the rows that contain every word in one of the columns, without regard to case."""
    lines = ["\n".join(map(readable, row)).casefold() for row in plain_rows(table)]
    return np.array([place for place, line in enumerate(lines) if all(word in line for word in words)], np.int64)


def turn_to(table: pa.Table, selection: Selection, shown: Sequence[str] = ()) -> TablePage:
    """Return the page of a table that a selection asks for; `shown` are its columns unless all are asked for."""
    names = [name for name in shown if name in table.column_names]
    if names and not selection.all_columns:
        table = table.select(names)
    chosen = select(table, selection)
    last = max(1, -(-chosen.num_rows // ROWS_PER_PAGE))
    selection = replace(selection, page=min(selection.page, last))
    part = chosen.slice((selection.page - 1) * ROWS_PER_PAGE, ROWS_PER_PAGE)
    return TablePage(
        selection=selection,
        names=list(chosen.column_names),
        numbers=[is_number(kind) for kind in chosen.schema.types],
        rows=[[_shortened(readable(cell)) for cell in row] for row in plain_rows(part)],
        num_rows=chosen.num_rows,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
