"""Selecting finished trials by conditions on their settings, even if the code of their models is missing."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from orch.core.errors import InvalidSettings, OrchError
from orch.store.columns import SCHEMAS
from orch.store.store import Store
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.trial import Trial, parse_config
from orch.sweeps.where import Known, Settings, parse_where

REVISIONS = ("model_revision", "task_revision")
"""Columns that conditions on finished trials may name, as if they were settings."""


def known_settings(trials: pa.Table, definitions: Definitions = BUILT_IN_DEFINITIONS) -> Known:
    """Return what conditions may name: the settings of `definitions`, and those of trials whose code is missing.

    `trials` is a table with all columns.
    """
    known = Known.of(definitions)
    unknown = (field for field in trials.schema if field.name not in SCHEMAS["trials"].names)
    fields = {field.name: _python_type(field.type) for field in unknown}
    names = {kind: {*known.choices[kind], *trials[kind].unique().to_pylist()} for kind in ("task", "model")}
    return Known(fields | dict(known.fields), dict(known.choices) | names)


def matching_trials(
    conditions: Iterable[str], trials: pa.Table, definitions: Definitions = BUILT_IN_DEFINITIONS
) -> list[str]:
    """Return the ids of the finished trials that meet the conditions, given a table with all columns."""
    known = known_settings(trials, definitions)
    where = parse_where(conditions, Known(dict(known.fields) | dict.fromkeys(REVISIONS, int), known.choices))
    of_settings, of_revisions = where.split(REVISIONS)
    rows = trials.select(["trial_id", "config", *REVISIONS]).to_pylist()
    matches = of_settings.matches
    return [
        row["trial_id"]
        for row in rows
        if of_revisions.matches(row) and matches(_trial_or_settings(parse_config(row["config"]), definitions))
    ]


def trials_to_discard(store: Store, where: list[str], trial_ids: list[str]) -> list[str]:
    """Return the ids of finished trials that meet every condition, or that are named by the beginning of their ids."""
    trials = store.read("trials")
    finished = trials["trial_id"].to_pylist()
    named, problems = set(), []
    for given in trial_ids:
        matching = [trial_id for trial_id in finished if given and trial_id.startswith(given)]
        if len(matching) == 1:
            named |= {*matching}
        else:
            found = f"{len(matching)} results begin with it" if matching else f"{store.location} has no such result"
            problems.append(f'--trial {given}: {found}: copy an id from orch query "SELECT trial_id FROM trials"')
    if problems:
        raise InvalidSettings(problems)
    return sorted({*named, *(matching_trials(where, trials) if where else ())})


def _trial_or_settings(config: Mapping[str, Any], definitions: Definitions) -> Trial | Settings:
    """Return the trial, with defaults for later settings; or only its stored settings if its code is missing."""
    try:
        return Trial.from_dict(config, definitions)
    except OrchError:
        task, model = config["task"], config["model"]
        return {**config, **task, **model, "task": task["name"], "model": model["name"]}


def _python_type(kind: pa.DataType) -> Any:
    """Return the type of a setting that has a column of this type."""
    if kind.num_fields:
        return tuple[Any, ...]
    return {"int64": int, "double": float, "bool": bool}.get(str(kind), str)
