"""Decisions that results trained before an edit count for the edited code, as `orch keep` records them in a store.

A decision is about a class by its name and its own revision, not about a file: it holds however the file is formatted
or called, and no longer once the class is edited again. Decisions are never changed or deleted; the latest one counts.
"""

import secrets
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from orch.core.records import KeptRecord
from orch.usercode.code import KeptRevision, UserCode
from orch.usercode.loading import load
from orch.usercode.stored_code import put_code

if TYPE_CHECKING:
    from orch.store import Store

FOLDER = "kept"


def with_kept(store: "Store", code: UserCode) -> UserCode:
    """Return a code whose models and tasks have the revisions that were decided for them in this store."""
    decisions = sorted(store.list_json(FOLDER, KeptRecord).values(), key=lambda values: str(values["at"]))
    if not decisions:
        return code
    decided = {(each["kind"], each["name"], each["revision"]): each["counts_as"] for each in decisions}
    kept = {(kind, name): revision for kind, name, revision in code.kept}
    for kind, name, revision in own_revisions(code):
        if (kind, name, revision) in decided:
            kept[kind, name] = decided[kind, name, revision]
    return replace(code, kept=tuple((*part, revision) for part, revision in sorted(kept.items())))


def own_revisions(code: UserCode) -> list[KeptRevision]:
    """Return the kind, the name and the revision of each class that a code defines, whatever was decided."""
    loaded = load(replace(code, kept=()))
    return [
        *(("model", name, model.revision) for name, model in loaded.models.items()),
        *(("task", name, task.revision) for name, task in loaded.tasks.items()),
    ]


def keep(store: "Store", code: UserCode, revisions: Iterable[KeptRevision]) -> None:
    """Record that results of these revisions count for the models and tasks of a code; those of others are skipped."""
    own = {(kind, name): revision for kind, name, revision in own_revisions(code)}
    for kind, name, counts_as in revisions:
        if (kind, name) not in own:
            continue
        values = {
            "kind": kind,
            "name": name,
            "revision": own[kind, name],
            "counts_as": counts_as,
            "file": code.file,
            "at": datetime.now(UTC).isoformat(),
        }
        store.put_json(f"{FOLDER}/{name}-{secrets.token_hex(8)}.json", values)
    put_code(store, [with_kept(store, code)])  # the next edit is compared with it
