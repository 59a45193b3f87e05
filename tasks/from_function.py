"""A task made from a function: `@orch.task(inputs=6, states=6)` above `step(state, symbol, **settings)`."""

import functools
import inspect
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from orch.core.errors import InvalidSettings
from orch.core.settings import setting
from orch.tasks.task import Task

Size = int | Callable[..., int]
"""A number, or a function of some of the task's settings (by their names) that returns it."""
_PLAIN = (bool, int, float, str)


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionTask(Task):
    """A task whose states are the numbers 0 to `states` - 1 and whose target is the last state.

    Input symbols are read as they are numbered. Where there are no more states than symbols, a state's token is the
    symbol of its number; otherwise the states have tokens of their own, which are predicted and never read.
    """

    modulus: int = setting(0, "number of states")

    wrapped: ClassVar[Callable[..., int]]
    """The function itself."""
    made_with: ClassVar[Mapping[str, Any]] = {}
    """The arguments `inputs`, `states` and `initial` of `orch.task`."""
    function_settings: ClassVar[tuple[str, ...]] = ()
    """Parameters of the function after the state and the symbol."""

    def __post_init__(self) -> None:
        default = next(field.default for field in fields(self) if field.name == "modulus")
        if not self.has_modulus and self.modulus == default:
            object.__setattr__(self, "modulus", self.num_classes)

    def _size(self, name: str) -> int:
        return _evaluate(self.made_with[name], {each: getattr(self, each) for each in self.function_settings})

    @property
    def summary(self) -> str:
        """Every setting of the function with its value, such as "size 5"."""
        return ", ".join(f"{each.replace('_', ' ')} {getattr(self, each)}" for each in self.function_settings)

    @property
    def full_title(self) -> str:
        """Title of the task with these settings, for tables."""
        return f"{self.title_of()} ({self.summary})" if self.summary else self.title_of()

    @property
    def slots(self) -> tuple[range, ...]:
        return (range(self._size("inputs")),)

    @property
    def initial(self) -> int:
        return int(self.made_with["initial"])

    @property
    def num_classes(self) -> int:
        return self._size("states")

    @property
    def unread(self) -> tuple[str, ...]:
        return () if self.num_classes <= self.num_symbols else tuple(map(str, range(self.num_classes)))

    def step(self, state: int, symbol: int) -> int:
        settings = {each: getattr(self, each) for each in self.function_settings}
        return operator.index(type(self).wrapped(state, symbol, **settings))

    def target(self, state: int) -> int:
        return self.num_readable + state if self.unread else state

    def problems(self) -> list[str]:
        return list(_problems(self))


@functools.lru_cache(maxsize=1 << 10)
def _problems(task: FunctionTask) -> tuple[str, ...]:
    """Return what is wrong with a task: every state that inputs can reach is visited once."""
    num_states, num_inputs, called = task.num_classes, task.num_symbols, f"task {task.name}"
    if num_states < 2:
        return (f"{called} has {num_states} states, which leaves nothing to track: use 2 or more",)
    if num_inputs < 1:
        return (f"{called} has {num_inputs} inputs: use 1 or more",)
    if not task.has_modulus and task.modulus != num_states:
        return (f"{called} has no setting modulus, but {num_states} states: leave modulus out",)
    states = range(num_states)
    if task.initial not in states:
        return (f"{called} begins in state {task.initial}, but its states are 0 to {num_states - 1}: change initial",)
    seen, frontier = {task.initial}, [task.initial]
    while frontier:
        state = frontier.pop()
        for symbol in range(num_inputs):
            try:
                reached = task.step(state, symbol)
            except Exception as error:
                return (f"{called} cannot read symbol {symbol} in state {state} ({type(error).__name__}: {error})",)
            if reached not in states:
                return (
                    f"{called} goes from state {state} with symbol {symbol} to {reached}: its states are 0 to"
                    f" {num_states - 1}, so return one of these, or change states",
                )
            if reached not in seen:
                seen.add(reached)
                frontier.append(reached)
    return ()


def _evaluate(size: Size, settings: dict[str, Any]) -> int:
    if not callable(size):
        return operator.index(size)
    return operator.index(size(**{name: settings[name] for name in inspect.signature(size).parameters}))


def task(
    *, inputs: Size, states: Size, initial: int = 0, name: str | None = None
) -> Callable[[Callable[..., int]], type[FunctionTask]]:
    """Make a task from a function `step(state, symbol)` that returns the next state.

    States are numbered from 0 to `states` - 1 and symbols from 0 to `inputs` - 1; every sequence begins in the state
    `initial`, and the model predicts the last state. Further parameters with plain defaults become settings of the
    task. `inputs` and `states` may be functions of these settings.

    >>> @task(inputs=lambda base: base, states=lambda base: base)
    ... def sums(state, symbol, base=3):
    ...     return (state + symbol) % base
    >>> sums().fold([1, 2, 2]), sums(base=10).fold([1, 2, 2]), sums(base=10).summary
    (2, 5, 'base 10')
    """

    def make(step: Callable[..., int]) -> type[FunctionTask]:
        defaults = _checked_settings(step)
        sizes: dict[str, Size] = {"inputs": inputs, "states": states}
        called = f"task {step.__name__}"
        problems = []
        for which, size in sizes.items():
            if callable(size):
                unknown = [each for each in inspect.signature(size).parameters if each not in defaults]
                problems += [f"{called}: {which} depends on {each}, which is no setting of it" for each in unknown]
            elif not isinstance(size, int) or isinstance(size, bool):
                problems.append(f"{called}: {which} {size!r} is not a whole number: use one, or a function of settings")
        if problems:
            raise InvalidSettings(problems)
        annotations = {each: _annotation(value) for each, value in defaults.items()}
        declared = {
            each: setting(value, f"{each.replace('_', ' ')} of {step.__name__}") for each, value in defaults.items()
        }
        if "modulus" not in defaults:
            annotations["modulus"], declared["modulus"] = int, setting(_evaluate(states, defaults), "number of states")
        namespace = {
            "__module__": step.__module__,
            "__qualname__": step.__qualname__,
            "__doc__": step.__doc__,
            "__annotations__": annotations,
            "name": name or step.__name__.lower(),
            "wrapped": staticmethod(step),
            "made_with": {**sizes, "initial": initial},
            "function_settings": tuple(defaults),
            "has_modulus": "modulus" in defaults,
            **declared,
        }
        plain = type(step.__name__, (FunctionTask,), namespace)
        return dataclass(frozen=True, kw_only=True, slots=True)(plain)

    return make


def _checked_settings(step: Callable[..., int]) -> dict[str, Any]:
    """Return the settings of a function with their defaults, or raise an error that lists everything wrong."""
    parameters = list(inspect.signature(step).parameters.values())
    called = f"task {step.__name__}"
    positional = [each for each in parameters[:2] if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if len(positional) < 2:
        raise InvalidSettings(
            [f"{called} must take a state and a symbol: define it as def {step.__name__}(state, symbol)"]
        )
    problems = []
    for each in parameters[2:]:
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            problems.append(f"{called} takes {each}: name each setting and give it a default")
        elif each.default is each.empty:
            problems.append(f"{called} has a setting {each.name} without a default: add one, as in {each.name}=3")
        elif each.name != "modulus" and (hasattr(FunctionTask, each.name) or each.name == "wrapped"):
            problems.append(f"{called} has a setting {each.name}, a name that every task uses: rename it")
        elif _annotation(each.default) is None:
            problems.append(
                f"{called} has a setting {each.name} that is not plain: use a number, true or false, a text, or a tuple"
                " of one kind of these"
            )
    if problems:
        raise InvalidSettings(problems)
    return {each.name: each.default for each in parameters[2:]}


def _annotation(default: Any) -> Any:
    """Return the declared type of a setting with this default; None if it is not plain."""
    if isinstance(default, tuple):
        kinds = {type(each) for each in default}
        return tuple[kinds.pop(), ...] if len(kinds) == 1 and kinds <= set(_PLAIN) else None  # type: ignore[misc]
    return type(default) if type(default) in _PLAIN else None
