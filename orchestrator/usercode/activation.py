"""Which own code is in use in this process: its sweeps, models and tasks are known by name beside the built-in ones."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orch import models, tasks
from orch.core.errors import InvalidCode
from orch.sweeps import registry as sweeps
from orch.sweeps.trial import Trial
from orch.usercode.code import UserCode, all_problems
from orch.usercode.loading import Loaded, code_of, load
from orch.usercode.user_sweep import UserSweep

_IN_USE: list[Loaded] = []


def use(codes: Iterable[UserCode]) -> None:
    """From now on exactly these. What is wrong with them, or clashes, is told at once, and then nothing changes."""
    wanted = all_problems(load, dict.fromkeys(codes))
    if wanted == _IN_USE:
        return
    from orch.store import user_columns as own_columns

    registries: dict[str, dict[str, Any]] = {"sweep": sweeps.SWEEPS, "model": models.REGISTRY, "task": tasks.REGISTRY}
    own: list[own_columns.OwnType] = []
    for loaded in wanted:
        own += [*loaded.tasks.values(), *loaded.models.values()]
    before = {(kind, name) for loaded in _IN_USE for kind, name, _ in _named(loaded)}
    built_in = {(kind, name) for kind, registry in registries.items() for name in registry} - before
    problems = _clashes(wanted, built_in | {("sweep", sweeps.ALL)}) or own_columns.clashes(own)
    if problems:
        raise InvalidCode(problems)
    for kind, name in before:
        del registries[kind][name]
    for loaded in wanted:
        for kind, name, value in _named(loaded):
            registries[kind].setdefault(name, value)
    own_columns.include(own)
    _IN_USE[:] = wanted


def in_use() -> tuple[UserCode, ...]:
    return tuple(loaded.code for loaded in _IN_USE)


def behind(trials: Iterable[Trial]) -> list[UserCode]:
    """The code that defines the models and tasks of these trials, as far as it is the user's."""
    kinds = dict.fromkeys(type(part) for trial in trials for part in (trial.task, trial.model))
    return list(dict.fromkeys(code for code in map(code_of, kinds) if code is not None))


def outdated(registry: Mapping[str, type[Any]], part: Mapping[str, Any], revision: int | None) -> bool:
    """Whether the model or task of a recorded trial is of another version of own code than the one in use: what its
    settings meant then, the code may not know."""
    known = registry.get(part["name"])
    return known is not None and code_of(known) is not None and known.revision != revision


def _named(loaded: Loaded) -> Iterator[tuple[str, str, Any]]:
    yield "sweep", loaded.code.name, UserSweep(loaded.code.name, loaded.sweep.__name__, loaded.code)
    yield from (("task", name, value) for name, value in loaded.tasks.items())
    yield from (("model", name, value) for name, value in loaded.models.items())


def _clashes(wanted: list[Loaded], built_in: set[tuple[str, str]]) -> list[str]:
    """Files that share the one that defines a model do not clash: it is the same in both."""
    problems = []
    seen: dict[tuple[str, str], tuple[str, Any]] = {}
    for loaded in wanted:
        file = loaded.code.file
        for kind, name, value in _named(loaded):
            other, same = seen.setdefault((kind, name), (file, value))
            if (kind, name) in built_in:
                remedy = "rename the file" if kind == "sweep" else "give it another name"
                problems.append(f"{file}: there is a built-in {kind} {name}: {remedy}")
            elif value is not same and (kind == "sweep" or value.revision != same.revision):
                problems.append(f"{kind} {name} is defined by both {other} and {file}: rename one of them")
    return problems
