"""Requests for sweeps, and their record in the store, by which `orch resume` and `orch train --trial` find them."""

import hashlib
import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orch.core.errors import InvalidSettings, OrchError, UnknownName
from orch.core.reading import shown
from orch.core.records import SweepRecord, group_seconds
from orch.core.settings import to_dict
from orch.planning.plan import Plan, make_plan
from orch.planning.probed import Probe
from orch.store import Store, StoreWarning
from orch.sweeps.catalogue import Catalogue
from orch.sweeps.registry import ALL, SWEEPS
from orch.sweeps.scales import LAPTOP, is_scale
from orch.sweeps.trial import Trial, parse_config
from orch.usercode import NamedSweeps, UserCode, make_catalogue, name_sweeps
from orch.usercode.kept import with_kept
from orch.usercode.loading import surroundings_kept
from orch.usercode.naming import FOLDER
from orch.usercode.stored_code import code_of_trial, get_code, put_code


@dataclass(frozen=True)
class Request:
    """The sweeps, scale and conditions that a user asked for."""

    sweeps: tuple[str, ...]
    scale: str
    where: tuple[str, ...] = ()
    code: tuple[UserCode, ...] = ()
    """The user's files as they were when the request was made."""

    @classmethod
    def read(
        cls, names: Iterable[str], scale: str | None, where: Iterable[str], store: Store | None = None
    ) -> "Request":
        """Make a request from names of sweeps and of files, which are read now and not again.

        A name may also be that of a sweep recorded in `store`; without a `scale`, it is run at its recorded scale. With
        a store, earlier results count for edited code where `orch keep` has recorded that in it.
        """
        return cls.of(name_sweeps(names, store, scale), where)

    @classmethod
    def of(cls, named: NamedSweeps, where: Iterable[str]) -> "Request":
        """Make a request for the sweeps that a user named."""
        return cls(named.names, named.scale or LAPTOP.name, tuple(where), named.codes)

    @property
    def catalogue(self) -> Catalogue:
        """The built-in models, tasks and sweeps, and those that its code defines."""
        return make_catalogue(self.code)

    def plan(self, store: Store | None, probe: Probe | None = None) -> Plan:
        """Plan the sweeps; `probe` tries the user's own models and tasks among the trials that are left."""
        catalogue = self.catalogue
        with surroundings_kept():
            return make_plan(self.sweeps, self.scale, self.where, store, catalogue=catalogue, probe=probe)

    @property
    def description(self) -> str:
        narrowed = f" where {' and '.join(self.where)}" if self.where else ""
        return f"{', '.join(self.sweeps)} at {self.scale} scale{narrowed}"


def record(store: Store, request: Request, plan: Plan) -> None:
    """Record a request in the store, for `orch resume`, with its trials, so that `orch status` need not plan again."""
    digest = hashlib.sha256(request.description.encode()).hexdigest()[:8]
    name = f"{'-'.join((*request.sweeps, request.scale))[:60].replace('/', '_')}-{digest}"
    values = {
        "sweeps": list(request.sweeps),
        "scale": request.scale,
        "where": list(request.where),
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "seconds": group_seconds({planned.id: round(planned.seconds, 3) for planned in plan.trials if planned.id}),
        "waiting": plan.num_waiting,
        "code": put_code(store, request.code),
        "cells": _cells(plan) if request.code else [],
        "titles": {code.name: request.catalogue.sweeps[code.name].title for code in request.code},
    }
    store.put_json(f"{FOLDER}/{name}.json", values)


def _cells(plan: Plan) -> list[dict[str, Any]]:
    """Return the cells of a plan with their trials, so that they can be shown without running the user's code."""
    cells: dict[Trial, list[str]] = {}
    for planned in plan.trials:
        if planned.id:
            cells.setdefault(planned.trial.stackable(), []).append(planned.id)
    return [
        {
            "model": trial.model.name,
            "variant": trial.model.summary,
            "task": trial.task.name,
            "problem": trial.task.summary,
            "settings": to_dict(trial.model)
            | {name: value for name, value in to_dict(trial).items() if name not in ("model", "task")},
            "trials": " ".join(ids),
        }
        for trial, ids in cells.items()
    ]


def recorded_requests(store: Store, names: Collection[str] = (), newest_code: bool = True) -> list[Request]:
    """Return every request that was ever made on this store, or those for any of the sweeps `names`.

    A sweep whose file was edited and run again has its newest recorded code in all of its requests, or, without
    `newest_code`, in each the code that it was made with. Recorded code is run if `orch keep` was used on this store,
    to find what the decisions are about.
    """
    records = _records(store)
    known = {name for values in records for name in values["sweeps"]}
    if problems := [str(UnknownName("recorded sweep", name, known)) for name in names if name not in known]:
        raise InvalidSettings(problems)
    wanted = [values for values in records if not names or {*names} & {*values["sweeps"]}]
    codes = [get_code(store, values.get("code", ()), ", ".join(values["sweeps"])) for values in wanted]
    oldest_first = sorted(zip(wanted, codes, strict=True), key=lambda each: str(each[0].get("at", "")))
    newest = {code.name: code for _, its_codes in oldest_first for code in its_codes}
    return [
        Request(
            tuple(values["sweeps"]),
            values["scale"],
            tuple(values["where"]),
            tuple(with_kept(store, newest[code.name] if newest_code else code) for code in its_codes),
        )
        for values, its_codes in zip(wanted, codes, strict=True)
    ]


def _records(store: Store) -> list[Any]:
    """Return the recorded requests whose scale and sweeps are known. No other may keep these from being resumed."""
    found = []
    for name, values in store.list_json(FOLDER, SweepRecord).items():
        unknown = [] if values.get("code") else [each for each in values["sweeps"] if each not in (*SWEEPS, ALL)]
        if is_scale(values["scale"]) and not unknown:
            found.append(values)
            continue
        about = f"{FOLDER}/{name}.json of the store at {store.location} is left out"
        reason = f"sweep {shown(unknown[0])}" if unknown else f"scale {shown(values['scale'])}"
        warnings.warn(f"{about} (there is no {reason}): upgrade orch, or delete it", StoreWarning, stacklevel=3)
    return found


def find_trial(store: Store, trial_id: str) -> Trial:
    """Return the trial that has this id, or whose id begins with it: a finished one, or one of a recorded sweep.

    The recorded code of user-defined models and tasks is run.
    """
    finished = store.done()
    if trial_id in finished:
        return _finished_trial(store, trial_id)
    asked: dict[str, Trial] = {}
    for request in recorded_requests(store, newest_code=False):
        asked |= {planned.trial.id: planned.trial for planned in request.plan(store).trials}
    matching = [key for key in {*asked, *finished} if key.startswith(trial_id)]
    if len(matching) != 1:
        problem = f"{len(matching)} trials begin with it" if matching else "no sweep on this store asked for it"
        raise OrchError(f"trial {trial_id!r}: {problem}: copy an id from orch failures, and check --store")
    return asked.get(matching[0]) or _finished_trial(store, matching[0])


def _finished_trial(store: Store, trial_id: str) -> Trial:
    rows = store.read("trials", ["trial_id", "config"]).to_pylist()
    config = next(row["config"] for row in rows if row["trial_id"] == trial_id)
    return Trial.from_dict(parse_config(config), make_catalogue(code_of_trial(store, trial_id)))
