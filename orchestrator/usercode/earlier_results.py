"""Results that a store has for an earlier version of a user's code: they do not count until `orch keep`."""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orch.core.counted import counted
from orch.core.errors import InvalidCode, InvalidSettings
from orch.core.records import CodeRecord, SweepRecord
from orch.sweeps.catalogue import Catalogue
from orch.sweeps.expansion import expand
from orch.sweeps.scales import SCALES, find_scale, is_scale
from orch.sweeps.selection import COLUMNS, Results
from orch.sweeps.trial import Trial
from orch.usercode.changes import changes
from orch.usercode.code import KeptRevision, UserCode
from orch.usercode.loading import bindings_of, code_of
from orch.usercode.stored_code import FOLDER

if TYPE_CHECKING:
    from orch.store import Store

MOST_NAMED = 3
_ROW = ("trial_id", "model", "model_revision", "task", "task_revision", "finished_at")


@dataclass(frozen=True)
class EarlierResult:
    """A finished trial that would be asked for again, because its model or task was edited since."""

    trial: Trial
    earlier_id: str
    revisions: tuple[KeptRevision, ...]
    """The revisions that its edited model and task had."""
    all_ids: tuple[str, ...]
    """The ids of all its results of earlier versions."""


def asked_trials(names: Iterable[str], catalogue: Catalogue, store: "Store") -> list[Trial]:
    """Return the trials that these sweeps ask for, at any scale, and under the protocols that the store has seen."""
    names, found = list(names), dict[str, Trial]()
    if not store.exists():
        return []
    results = Results.of_table(store.read("trials", list(COLUMNS)))
    recorded = sorted({str(values["scale"]) for values in store.list_json("sweeps", SweepRecord).values()})
    for scale in map(find_scale, dict.fromkeys([*SCALES, *filter(is_scale, recorded)])):
        with contextlib.suppress(InvalidCode, InvalidSettings):  # a file may be made for some scales only
            found |= {each.id: each.trial for each in expand(names, scale, results, catalogue).trials.values()}
    return list(found.values())


def earlier_results(trials: Iterable[Trial], store: "Store") -> list[EarlierResult]:
    """Return those of the trials that have no result, except with earlier code that the store has.

    Of several versions, the one with fewer edits since counts, then the latest. The code in the store is not run.
    """
    wanted = [trial for trial in trials if any(code_of(type(part)) is not None for part in (trial.model, trial.task))]
    if not wanted or not store.exists():
        return []
    rows = {row["trial_id"]: row for row in store.read("trials", list(_ROW)).to_pylist()}
    revisions: dict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
    for row in rows.values():
        revisions[row["model"], row["task"]].add((row["model_revision"], row["task_revision"]))
    versions = earlier_versions(store)
    found = []
    for trial in wanted:
        if trial.id in rows:
            continue
        ways = []
        for pair in revisions[trial.model.name, trial.task.name]:
            earlier_id = trial.id_at(*pair)
            if earlier_id in rows and (edited := _edited(trial, pair, versions)):
                ways.append(EarlierResult(trial, earlier_id, edited, ()))
        if ways:
            ids = tuple(each.earlier_id for each in ways)
            latest = sorted(ways, key=lambda each: rows[each.earlier_id]["finished_at"], reverse=True)
            best = min(latest, key=lambda each: len(each.revisions))
            found.append(EarlierResult(trial, best.earlier_id, best.revisions, ids))
    return found


Versions = Mapping[KeptRevision, list[UserCode]]
"""The codes in a store that define each revision of a model or a task."""


def earlier_versions(store: "Store") -> Versions:
    """Return the codes in a store by the revisions that they define."""
    found: dict[KeptRevision, list[UserCode]] = defaultdict(list)
    for values in store.list_json(FOLDER, CodeRecord).values():
        code = UserCode.from_dict(values)
        for kind in ("model", "task"):
            for name, revision in values[f"{kind}s"].items():
                found[kind, name, revision].append(code)
    return found


def _edited(trial: Trial, revisions: tuple[int, int], versions: Versions) -> tuple[KeptRevision, ...]:
    """Return the earlier revisions of an edited model and task; nothing if one of them is no earlier version."""
    found = []
    parts: tuple[tuple[str, Any], ...] = (("model", trial.model), ("task", trial.task))
    for (kind, part), revision in zip(parts, revisions, strict=True):
        if revision == part.revision:
            continue
        files = {file for file, _ in bindings_of(type(part))} if code_of(type(part)) is not None else set()
        same_file = (
            code for code in versions.get((kind, part.name, revision), ()) if files & {f for f, _ in code.files}
        )
        if next(same_file, None) is None:
            return ()
        found.append((kind, part.name, revision))
    return tuple(found)


def describe_edits(results: Iterable[EarlierResult], store: "Store") -> list[dict[str, Any]]:
    """Return, for each edit, the number of trials done before it and the definitions that it changed."""
    versions = earlier_versions(store)
    groups: Counter[tuple[str, ...]] = Counter()
    known: dict[tuple[type, KeptRevision], list[str]] = {}
    for result in results:
        edited: dict[str, None] = {}
        for kind, name, revision in result.revisions:
            part = type(result.trial.model if kind == "model" else result.trial.task)
            key = (part, (kind, name, revision))
            if key not in known:
                known[key] = _changes(part, versions[kind, name, revision])
            edited |= dict.fromkeys(known[key])
        groups[tuple(edited)] += 1
    return [{"trials": count, "edited": list(edited)} for edited, count in groups.most_common()]


def _changes(part: type, earlier: Iterable[UserCode]) -> list[str]:
    """Return what was edited since the version that is nearest to the present one."""
    code = code_of(part)
    assert code is not None
    found = []
    for each in earlier:
        with contextlib.suppress(SyntaxError):  # it was written for another version of Python
            found.append(changes(each, code, bindings_of(part)))
    return min(found, key=len, default=[code.file])


def sentence(edits: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence about the results of earlier versions; empty if there are none."""
    found = []
    for edit in edits:
        named = edit["edited"][:MOST_NAMED]
        more = len(edit["edited"]) - len(named)
        what = f"before your edit of {', '.join(named)}" + (f" and {more} more" if more else "")
        if not named:
            what = "with the same code under another revision, by an earlier version of orch or before orch keep"
        trials = counted(edit["trials"], "trial")
        found.append(f"{trials} {'was' if edit['trials'] == 1 else 'were'} done {what}")
    one = sum(edit["trials"] for edit in edits) == 1
    return f"{'; '.join(found)}: {'it is' if one else 'they are'} not counted" if found else ""


def num_counted(trials: Iterable[Trial], store: "Store", revisions: Iterable[KeptRevision]) -> int:
    """Return how many trials have a result if models and tasks have these revisions instead of their present ones."""
    chosen, done = {(kind, name): revision for kind, name, revision in revisions}, store.done()
    return sum(
        trial.id_at(
            chosen.get(("model", trial.model.name), trial.model.revision),
            chosen.get(("task", trial.task.name), trial.task.revision),
        )
        in done
        for trial in trials
    )


def revisions_to_keep(results: Iterable[EarlierResult]) -> list[KeptRevision]:
    """Return the revision of each edited model and task by which most of the results count."""
    votes: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    present: dict[tuple[str, str], int] = {}
    for result in results:
        earlier = {(kind, name): revision for kind, name, revision in result.revisions}
        parts: tuple[tuple[str, Any], ...] = (("model", result.trial.model), ("task", result.trial.task))
        for kind, part in parts:
            present[kind, part.name] = part.revision
            votes[kind, part.name][earlier.get((kind, part.name), part.revision)] += 1
    chosen = {part: counts.most_common(1)[0][0] for part, counts in votes.items()}
    return [(*part, revision) for part, revision in chosen.items() if revision != present[part]]
