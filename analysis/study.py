"""A study: the tables of a store for analysis, SQL queries over them, and the trained models."""

import functools
import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from orch.analysis.agreement import TOLERANCE
from orch.analysis.arrow_tables import column, description
from orch.analysis.board import Board
from orch.analysis.cells import cells_schema, cells_table
from orch.analysis.comparison import Comparison, compare
from orch.analysis.published import OOD
from orch.analysis.reproduction import Reproduction, reproduction
from orch.analysis.views import COMPARISON, PLAN, PUBLISHED, comparison_table, plan_table, published_table
from orch.core.errors import InvalidQuery, OrchError, UnknownName
from orch.planning.plan import make_plan
from orch.store import DEFAULT_STORE, SCHEMAS, Store
from orch.store.columns import setting_columns
from orch.sweeps.catalogue import BUILT_IN, Catalogue, resolve
from orch.sweeps.expansion import under_protocol
from orch.sweeps.registry import ALL
from orch.sweeps.scales import LAPTOP, PAPER, find_scale

if TYPE_CHECKING:
    from orch.analysis.query import Limits
    from orch.models.network import Network

STORED = ("trials", "curves", "attempts")
VIEWS = (*STORED, "cells", "published", "plan", "comparison")
"""Tables that `query` can read."""


class Study:
    """The results in a store. Tables are Arrow tables (`to_pandas()` converts them), read when first needed."""

    def __init__(
        self,
        location: str | os.PathLike[str] | Store = DEFAULT_STORE,
        catalogue: Catalogue = BUILT_IN,
        sweeps: Sequence[str] = (ALL,),
        trial_ids: Collection[str] | None = None,
    ):
        """`sweeps` are those of the `catalogue` whose trials the plan lists; by default, every sweep of the paper.

        With `trial_ids`, the tables have only these trials.
        """
        self._sweeps, self._trial_ids = tuple(sweeps), trial_ids
        opened = location if isinstance(location, Store) else Store.open(location)
        self.store, self.catalogue = opened.with_settings_of(catalogue), catalogue
        self._cells: tuple[pa.Table, pa.Table] | None = None

    @property
    def trials(self) -> pa.Table:
        """A row for each finished trial: settings, scores, times, where it ran."""
        return self._stored("trials")

    @property
    def curves(self) -> pa.Table:
        """A row for each validation during training."""
        return self._stored("curves")

    @property
    def attempts(self) -> pa.Table:
        """A row when an attempt at a trial starts and one when it ends, with its error if it failed."""
        return self._stored("attempts")

    @property
    def cells(self) -> pa.Table:
        """Finished trials by cell: the best, and the mean over the seeds of the chosen learning rate."""
        trials = self.trials
        if self._cells is None or self._cells[0] is not trials:
            self._cells = trials, cells_table(trials, self.catalogue)
        return self._cells[1]

    @property
    def published(self) -> pa.Table:
        """The paper's numbers."""
        return published_table()

    def plan(self, scale: str = LAPTOP.name) -> pa.Table:
        """Return every trial of the sweeps at a scale, with its state; under a protocol, of those that can run so."""
        sweeps = under_protocol(resolve(self._sweeps, self.catalogue), find_scale(scale), self.catalogue)
        return plan_table(make_plan(sweeps, scale, [], self.store, catalogue=self.catalogue))

    def board(self, scale: str = LAPTOP.name) -> Board:
        """Return the cells of every sweep at a scale, joined to the finished trials."""
        return Board.read(self.store, find_scale(scale))

    def comparison(self, scale: str = LAPTOP.name) -> list[Comparison]:
        """Return every published number that a scale plans trials for, compared with ours."""
        return compare(self.board(scale))

    def reproduction(self, scale: str = PAPER.name, split: str = OOD, tolerance: float = TOLERANCE) -> Reproduction:
        """Determine which published numbers of a split, each counted once, are met."""
        self.store.check_exists()
        return reproduction(self.comparison(scale), split, tolerance)

    def claims(self, scale: str | None = None) -> pa.Table:
        """Judge the paper's claims by the results at one scale, or at every scale that has results."""
        from orch.analysis.claims import claims_table, judge_store

        return claims_table(judge_store(self.store, scale))

    def model(self, trial_id: str) -> "Network":
        """Load the trained network of a trial, given its id or the beginning of the id."""
        from orch.training.checkpoints import parse_model
        from orch.usercode import make_catalogue
        from orch.usercode.stored_code import code_of_trial

        ids = self._stored("trials", ["trial_id"])["trial_id"].to_pylist()
        matching = [known for known in ids if known.startswith(trial_id)]
        if len(matching) != 1:
            problem = f"{len(matching)} finished trials begin with it" if matching else "no finished trial has it"
            raise OrchError(f"the trial id {trial_id!r} does not name one trial: {problem}; study.trials has them all")
        data = self.store.get_weights(matching[0])
        if data is None:
            raise OrchError(
                f"the weights of trial {matching[0]} were not kept: discard it, then run orch sweep with a larger"
                " --weights-mb"
            )
        catalogue = make_catalogue(code_of_trial(self.store, matching[0]))
        return parse_model(data, f"weights/{matching[0]}.safetensors", catalogue)[0]

    def query(self, sql: str, /, scale: str = LAPTOP.name, **tables: Any) -> pa.Table:
        """Run a SQL statement over the views and over `tables`, which are Arrow tables or pandas frames.

        The views `plan` and `comparison` are those of `scale`.
        """
        return self.ask(sql, scale, {name: _arrow(table) for name, table in tables.items()})

    def ask(self, sql: str, scale: str, tables: Mapping[str, pa.Table], limits: "Limits | None" = None) -> pa.Table:
        """Run a SQL statement over the views at a scale and over these Arrow tables."""
        from orch.analysis.query import NO_LIMITS, run

        taken = [name for name in tables if name.lower() in VIEWS]
        if taken:
            raise InvalidQuery(f"the name {taken[0]} is taken by a view: give the table another")
        views = {name: functools.partial(self.view, name, scale) for name in VIEWS}
        given = {name: functools.partial(_all_columns, table) for name, table in tables.items()}
        return run(sql, views | given, limits or NO_LIMITS)

    def view(self, name: str, scale: str = LAPTOP.name, columns: Collection[str] | None = None) -> pa.Table:
        """Return a view by name; with `columns`, a stored table is read with only these columns."""
        if name in STORED:
            schema = SCHEMAS[name]
            wanted = None if columns is None else [field for field in schema.names if field.lower() in columns]
            return self._stored(name, None if wanted is None else wanted or schema.names[:1])
        if name in ("cells", "published"):
            return self.cells if name == "cells" else self.published
        return self.plan(scale) if name == "plan" else comparison_table(self.comparison(scale))

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a view, with those of the user's own settings that the store or the catalogue has."""
        known = view_schema(name)
        if name not in ("trials", "cells"):
            return known
        stored = self.trials.schema if self.store.exists() else ()
        fields = {field.name: field for field in [*setting_columns(self.catalogue.user_types), *stored]}
        names = SCHEMAS["trials"].names
        return pa.schema([*known, *(_own(each) for each in fields.values() if each.name not in names)])

    def _stored(self, name: str, columns: list[str] | None = None) -> pa.Table:
        self.store.check_exists()
        if self._trial_ids is None:
            return self.store.read(name, columns)
        read = self.store.read(name, None if columns is None else [*dict.fromkeys([*columns, "trial_id"])])
        found = read.filter(pc.is_in(read["trial_id"], pa.array(self._trial_ids, pa.string())))
        return found if columns is None else found.select(columns)


def view_schema(name: str) -> pa.Schema:
    """Return the columns of a view, each with its `description`."""
    if name not in VIEWS:
        raise UnknownName("view", name, VIEWS)
    if name == "cells":
        return cells_schema()
    return {"published": PUBLISHED, "plan": PLAN, "comparison": COMPARISON}.get(name) or SCHEMAS[name]


def _own(field: pa.Field) -> pa.Field:
    """Return a column of a user's setting with a description, which it lacks where the code is not loaded."""
    return column(field.name, field.type, description(field) or "a setting of a model or task of your own")


def _all_columns(table: pa.Table, columns: Collection[str] | None) -> pa.Table:
    """Return a table that is in memory, with all columns, whichever are asked for."""
    return table


def _arrow(table: Any) -> pa.Table:
    return table if isinstance(table, pa.Table) else pa.Table.from_pandas(table)
