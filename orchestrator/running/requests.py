"""Requests for sweeps, and their record in the store, by which `orch resume` and `orch train --trial` find them."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from orch.core.errors import OrchError
from orch.planning.plan import Plan, make_plan
from orch.planning.probed import Probe
from orch.store import Store
from orch.sweeps.catalogue import Catalogue
from orch.sweeps.trial import Trial
from orch.usercode import UserCode, UserSweep, make_catalogue, read_sweeps
from orch.usercode.stored_code import get_code, put_code


@dataclass(frozen=True)
class Request:
    """The sweeps, scale and conditions that a user asked for."""

    sweeps: tuple[str, ...]
    scale: str
    where: tuple[str, ...] = ()
    code: tuple[UserCode, ...] = ()
    """The user's files as they were when the request was made."""

    @classmethod
    def read(cls, names: Iterable[str], scale: str, where: Iterable[str]) -> "Request":
        """Make a request from names of sweeps and of files, which are read now and not again."""
        sweeps, catalogue = read_sweeps(names)
        code = tuple(sweep.code for sweep in catalogue.sweeps.values() if isinstance(sweep, UserSweep))
        return cls(tuple(sweeps), scale, tuple(where), code)

    @property
    def catalogue(self) -> Catalogue:
        """The built-in models, tasks and sweeps, and those that its code defines."""
        return make_catalogue(self.code)

    def plan(self, store: Store | None, probe: Probe | None = None) -> Plan:
        """Plan the sweeps; `probe` tries the user's own models and tasks among the trials that are left."""
        return make_plan(self.sweeps, self.scale, self.where, store, catalogue=self.catalogue, probe=probe)

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
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": {planned.id: round(planned.seconds, 3) for planned in plan.trials if planned.id},
        "waiting": plan.num_waiting,
        "code": put_code(store, request.code),
    }
    store.put_json(f"sweeps/{name}.json", values)


def recorded_requests(store: Store) -> list[Request]:
    """Return every request that was ever made on this store."""
    found = []
    for values in store.list_json("sweeps").values():
        sweeps = tuple(values["sweeps"])
        code = get_code(store, values.get("code", ()), ", ".join(sweeps))
        found.append(Request(sweeps, values["scale"], tuple(values["where"]), code))
    return found


def find_trial(store: Store, trial_id: str) -> Trial:
    """Return the recorded trial that has this id, or whose id begins with it."""
    known: dict[str, Trial] = {}
    for request in recorded_requests(store):
        known |= {planned.trial.id: planned.trial for planned in request.plan(store).trials}
    matching = [key for key in known if key.startswith(trial_id)]
    if len(matching) != 1:
        problem = f"{len(matching)} trials begin with it" if matching else "no sweep on this store asked for it"
        raise OrchError(f"trial {trial_id!r}: {problem}: copy an id from orch failures, and check --store")
    return known[matching[0]]
