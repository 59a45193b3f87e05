"""A user's code in a store. It is never deleted, so that sweeps can resume and models be loaded without the file.

Reading a store never runs the code in it. Only `make_catalogue` does, to train or to load a model.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orch.core.errors import OrchError
from orch.core.records import CodeRecord
from orch.usercode.code import UserCode
from orch.usercode.loading import load

if TYPE_CHECKING:
    from orch.store import Store

FOLDER = "code"


def put_code(store: "Store", codes: Iterable[UserCode]) -> list[str]:
    """Write each code under its digest, with the revisions of the models and tasks it defines; return the digests."""
    digests = []
    for code in codes:
        loaded = load(code)
        revisions = {
            "models": {name: model.revision for name, model in loaded.models.items()},
            "tasks": {name: task.revision for name, task in loaded.tasks.items()},
        }
        store.put_json(f"{FOLDER}/{code.digest}.json", code.to_dict() | revisions)
        digests.append(code.digest)
    return digests


def get_code(store: "Store", digests: Iterable[str], sweep: str) -> tuple[UserCode, ...]:
    """Return the code of these digests. `sweep` is its name, for the error if the code is missing."""
    found = []
    for digest in digests:
        values = store.get_json(f"{FOLDER}/{digest}.json", CodeRecord)
        if values is None:
            raise OrchError(
                f"the code of {sweep} is no longer in the store at {store.location}: run orch sweep with its file again"
            )
        found.append(UserCode.from_dict(values))
    return tuple(found)


def code_of_trial(store: "Store", trial_id: str) -> tuple[UserCode, ...]:
    """Return the code that a finished trial was trained with; nothing if its model and task are built in."""
    columns = ["trial_id", "model", "model_revision", "task", "task_revision"]
    row = next((row for row in store.read("trials", columns).to_pylist() if row["trial_id"] == trial_id), None)
    if row is None:
        return ()
    defines: dict[UserCode, set[str]] = {}
    for values in store.list_json(FOLDER, CodeRecord).values():
        kinds = {kind for kind in ("model", "task") if values[f"{kind}s"].get(row[kind]) == row[f"{kind}_revision"]}
        defines[UserCode.from_dict(values)] = kinds
    chosen: dict[UserCode, set[str]] = {}
    for code, kinds in sorted(defines.items(), key=lambda item: (-len(item[1]), bool(item[0].kept))):
        if kinds - set().union(*chosen.values()):
            chosen[code] = kinds
    return tuple(chosen)
