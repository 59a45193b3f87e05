"""A grid: every model on every task, with the same learning rates, seeds and settings. `orch.grid` makes one."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orch.core.errors import InvalidSettings, OrchError, UnknownName, look_up_name
from orch.core.reading import LARGEST_INTEGER
from orch.core.settings import coerced, field_types, from_dict
from orch.models import ModelConfig
from orch.models.module_config import make_model
from orch.sweeps.cell import Cell
from orch.sweeps.protocols import find_protocol
from orch.sweeps.scales import PAPER, Scale
from orch.sweeps.selection import Results
from orch.sweeps.trial import Trial, check_number, with_matching_lengths
from orch.tasks import Task

Model = str | Mapping[str, Any] | ModelConfig | type[ModelConfig] | type[Any]
"""A name or a class, alone or in a dictionary with settings, as in `dict(name="lstm", width=32)`; or a config.

A class is one of modules, or a config's."""
AnyTask = str | Mapping[str, Any] | Task | type[Task]
"""A name or a task's class, alone or in a dictionary with settings; or a task."""

_OWN = ("task", "model", "learning_rate", "init_seed", "data_seed")
"""Settings of a trial that a grid chooses itself."""
TRIAL_SETTINGS = tuple(name for name in field_types(Trial) if name not in _OWN)


class Grid:
    """The cells of a grid at any scale. It is called like the function `cells` of a sweep file."""

    def __init__(
        self,
        models: Sequence[Model],
        tasks: Sequence[AnyTask],
        learning_rates: Sequence[float] | float | None,
        seeds: Sequence[int] | int | None,
        width: int | None,
        settings: Mapping[str, Any],
        caller: str = "__main__",
        protocol: str | None = None,
    ):
        """`caller` is the name of the module that the grid is part of."""
        problems: list[str] = []

        def collect(make: Any, *given: Any) -> Any:
            try:
                return make(*given)
            except OrchError as error:
                problems.extend(str(error).splitlines())

        self.models = [collect(_model, each, caller, width) for each in _listed(models, "models", problems)]
        self.tasks = [collect(_task, each) for each in _listed(tasks, "tasks", problems)]
        self.learning_rates = collect(_learning_rates, learning_rates)
        self.seeds = collect(_seeds, seeds)
        self.width = width
        self.settings = collect(_settings, settings, protocol)
        if problems:
            raise InvalidSettings(problems)
        num_cells = len(self.models) * len(self.tasks)
        check_number(num_cells * len(self.learning_rates or (0,)) * len(self.seeds or (0,)), "this grid has")

    @property
    def classes(self) -> list[type[Any]]:
        """The classes of models and tasks that it names, but not by text."""
        parts = [*self.models, *self.tasks]
        return [each if isinstance(each, type) else type(each) for each in parts if not isinstance(each, Mapping)]

    def __call__(self, scale: Scale, results: Results) -> Iterator[Cell]:
        """Yield a cell for every model on every task. What the grid does not say comes from the scale."""
        # Models and tasks are the user's choice: the scale leaves out none of them.
        chosen = replace(scale, moduli=PAPER.moduli, deepest=PAPER.deepest, sparse=False)
        if self.seeds is not None:
            chosen = replace(chosen, seeds=self.seeds, thrifty=False)
        for task in self.tasks:
            for model in self.models:
                yield chosen.cell(
                    _made("task", task, {}, scale.definitions.tasks),
                    _made("model", model, self._sizes(model, scale), scale.definitions.models),
                    self.learning_rates,
                    **self.settings,
                )

    def _sizes(self, model: Any, scale: Scale) -> dict[str, Any]:
        """Return the width of a model that is not a config: the grid's, or for a built-in model the scale's."""
        if isinstance(model, Mapping):
            return {"width": scale.width if self.width is None else self.width}
        return {} if self.width is None else {"width": self.width}


def grid(
    *,
    models: Sequence[Model],
    tasks: Sequence[AnyTask],
    learning_rates: Sequence[float] | float | None = None,
    seeds: Sequence[int] | int | None = None,
    width: int | None = None,
    protocol: str | None = None,
    **settings: Any,
) -> Grid:
    """Make the `cells` of a sweep file: every model on every task, with these learning rates, seeds and settings.

    A model or a task is a name such as "lstm", a config or its class; a model may also be a class of modules. For other
    settings than the defaults, write a dictionary such as `dict(name="block_diagonal", block_size=2)`, whose name may
    also be a class: `dict(name=Rotor, gated=False)`. `seeds`
    is a number of seeds or a list of them. `width` is that of models given by name or class. `settings` are those of
    trials, such as steps, batch_size, max_inputs, test_length and curve_lengths. Whatever is not given comes from the
    scale. If only one of test_length and curve_lengths is given, no length beyond it is tested. `protocol` names a set
    of settings, such as "chomsky".
    """
    caller = sys._getframe(1).f_globals.get("__name__", "__main__")
    return Grid(models, tasks, learning_rates, seeds, width, settings, caller, protocol)


def _check_length(given: Sequence[Any], subject: str) -> None:
    """Raise an error if a list of the grid stands for too many trials, before anything is made of its values."""
    try:
        number = len(given)
    except OverflowError:  # of a range that is longer than Python counts
        number = LARGEST_INTEGER
    check_number(number, subject)


def _listed(given: Any, name: str, problems: list[str]) -> list[Any]:
    if isinstance(given, (str, Mapping, type)) or not isinstance(given, Sequence):
        problems.append(f"{name} is not a list: write {name}=[…]")
        return []
    if not given:
        problems.append(f"{name} is empty: name at least one")
    _check_length(given, f"with these {name}, this grid has at least")
    return list(given)


def _model(given: Any, caller: str, width: int | None) -> Any:
    if isinstance(given, Mapping) and isinstance(given.get("name"), type):
        found = _model(given["name"], caller, width)
        return _with_settings("model", found, given, {} if width is None else {"width": width})
    if isinstance(given, (str, Mapping)):
        return _named("model", given)
    if isinstance(given, ModelConfig) or (isinstance(given, type) and issubclass(given, ModelConfig)):
        return given
    if isinstance(given, type) and any(base.__module__ == "torch.nn.modules.module" for base in given.__mro__):
        return make_model(given, caller)
    if any(base.__module__ == "torch.nn.modules.module" for base in type(given).__mro__):
        name = type(given).__name__
        raise InvalidSettings(
            [
                f"a {name} is a module that was made already: name its class instead, with settings as"
                f" dict(name={name}, …)"
            ]
        )
    raise InvalidSettings(
        [f"{given!r} is no model: use a name, a dictionary with a name, a config or a class of modules"]
    )


def _task(given: Any) -> Any:
    if isinstance(given, Mapping) and isinstance(given.get("name"), type):
        return _with_settings("task", _task(given["name"]), given, {})
    if isinstance(given, (str, Mapping)):
        return _named("task", given)
    if isinstance(given, Task) or (isinstance(given, type) and issubclass(given, Task)):
        return given
    if callable(given):
        name = getattr(given, "__name__", "it")
        raise InvalidSettings([f"{name} is a plain function: put @orch.task(inputs=…, states=…) above it"])
    raise InvalidSettings([f"{given!r} is no task: use a name, a dictionary with a name, a task or its class"])


def _named(kind: str, given: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return a name or a dictionary as a dictionary that has a name."""
    found = {"name": given} if isinstance(given, str) else dict(given)
    if not isinstance(found.get("name"), str):
        raise InvalidSettings([f"{kind} {given!r} has no name: write it like dict(name=…, …)"])
    return found


def _with_settings(kind: str, made: Any, given: Mapping[str, Any], sizes: Mapping[str, Any]) -> Any:
    """Return a config of this class with the settings of a dictionary that names the class."""
    settings = {name: value for name, value in given.items() if name != "name"}
    return from_dict(made, {**sizes, **settings}, kind=f"setting of {kind} {made.name}")


def _made(kind: str, part: Any, sizes: Mapping[str, Any], registry: Mapping[str, type[Any]]) -> Any:
    """Return the config of a model or task of the grid."""
    if isinstance(part, Mapping):
        settings = dict(part)
        name = settings.pop("name")
        return from_dict(look_up_name(kind, name, registry), {**sizes, **settings}, kind=f"setting of {kind} {name}")
    return part(**sizes) if isinstance(part, type) else part


def _learning_rates(given: Any) -> tuple[float, ...] | None:
    if given is None:
        return None
    several = isinstance(given, Sequence) and not isinstance(given, str)
    if several:
        _check_length(given, "a cell of this grid has")
    rates = tuple(given) if several else (given,)
    if not rates:
        raise InvalidSettings(["learning_rates is empty: give one at least, such as (1e-3,)"])
    wrong = [each for each in rates if not isinstance(each, (int, float)) or isinstance(each, bool) or not each > 0]
    if wrong:
        raise InvalidSettings(
            [f"learning rate {each!r} is not a positive number: use one such as 1e-3" for each in wrong]
        )
    return tuple(float(each) for each in rates)


def _seeds(given: Any) -> tuple[int, ...] | None:
    if given is None:
        return None
    if isinstance(given, int) and not isinstance(given, bool):
        given = range(given)
    several = isinstance(given, Sequence) and not isinstance(given, str)
    if several:
        _check_length(given, "a cell of this grid has")
    listed = tuple(given) if several else ()
    if not listed or any(not isinstance(each, int) or isinstance(each, bool) or each < 0 for each in listed):
        raise InvalidSettings([f"seeds {given!r} are not seeds: give a number of them, or a list such as (0, 1, 2)"])
    return tuple(dict.fromkeys(listed))


def _settings(given: Mapping[str, Any], protocol: str | None) -> dict[str, Any]:
    """Return the settings of trials in their declared types, with test lengths that fit each other."""
    problems = [str(UnknownName("setting", name, TRIAL_SETTINGS)) for name in given if name not in TRIAL_SETTINGS]
    if problems:
        raise InvalidSettings(problems)
    if protocol is not None:
        given = find_protocol(protocol).merged(given)
    return with_matching_lengths(coerced(Trial, given))
