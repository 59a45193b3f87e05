"""`orch.model`: the settings of a model, made from an ordinary `nn.Module` class. No torch is imported here.

    @orch.model
    class DeltaNet(nn.Module):
        def __init__(self, vocabulary, width=64, beta: float = 2.0): ...
        def forward(self, tokens): ...  # (B, T) to logits (B, T, V)

`DeltaNet` is then a `ModelConfig`: `DeltaNet(width=32)` is a model, whose network is made of modules of the class.
"""

import dataclasses
import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, overload
from weakref import WeakValueDictionary

from orch.core.errors import InvalidSettings, UnknownName
from orch.core.settings import setting
from orch.models.config import ModelConfig

if TYPE_CHECKING:
    from orch.models.network import Network

FACTS = ("title", "variant_titles", "family", "looks", "slow", "small_settings", "own_learning_rates")
"""Class attributes of `ModelConfig` that `orch.model` accepts."""
_PLAIN = (int, float, bool, str)
_made: "WeakValueDictionary[tuple[int, str], type[ModuleConfig]]" = WeakValueDictionary()
"""Models of plain classes, by the class's id and the module that wraps it. A model keeps its class, and so its id."""
_GIVEN_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModuleConfig(ModelConfig):
    """Settings that are the arguments of a module's `__init__`. The vocabulary's size is its first argument."""

    wrapped: ClassVar[type[Any]]
    """The module's class."""
    arguments: ClassVar[tuple[str, ...]] = ()
    """The settings that are arguments of `__init__`."""

    def network(self) -> "type[Network]":
        return _network()

    def make_module(self, vocabulary: int) -> Any:
        """Make a module with these settings."""
        return self.wrapped(vocabulary, **{name: getattr(self, name) for name in self.arguments})


@functools.cache
def _network() -> "type[Network]":
    from orch.models.network import PerTrial

    class OfModule(PerTrial):
        @classmethod
        def skeleton(cls, config: Any, vocabulary: Any) -> Any:
            return config.make_module(vocabulary.size)

    return OfModule


@overload
def model(
    module: type[Any], /, *, name: str | None = None, about: str | None = None, **facts: Any
) -> type[ModuleConfig]: ...


@overload
def model(
    module: None = None, /, *, name: str | None = None, about: str | None = None, **facts: Any
) -> Callable[[type[Any]], type[ModuleConfig]]: ...


def model(module: Any = None, /, *, name: str | None = None, about: str | None = None, **facts: Any) -> Any:
    """Make a model of an `nn.Module` class: call it with the class, or write it as a decorator above the class.

    The first argument of the module's `__init__` is the size of the vocabulary. Its further arguments with plain
    defaults (int, float, bool, str, a tuple of one of them, or None beside one) are the model's settings; arguments
    with other defaults keep these. `forward` maps tokens (B, T) to logits (B, T, V), or tokens and ends (B) to logits
    (B, T, V) or (B, V).

    `name` is by default the class's in snake_case and `about` the first line of its docstring. `facts` are class
    attributes of `ModelConfig`, such as title="DeltaNet" or own_learning_rates={"laptop": (1e-3,)}.
    """
    caller = sys._getframe(1).f_globals.get("__name__", "__main__")
    if module is None:
        return lambda found: make_model(found, caller, name, about, facts)
    return make_model(module, caller, name, about, facts)


def make_model(
    module: Any, caller: str, name: str | None = None, about: str | None = None, facts: Mapping[str, Any] | None = None
) -> type[ModuleConfig]:
    """Make a model of an `nn.Module` class as `model` does, for the module `caller`.

    A class that is given without a name or facts makes one model, however often it is given.
    """
    if isinstance(module, type) and not (name or about or facts):
        key = id(module), caller
        if key not in _made:
            _made[key] = made = _make_model(module, caller, None, None, {})
            return made
        return _made[key]
    return _make_model(module, caller, name, about, facts or {})


def _make_model(
    module: Any, caller: str, name: str | None, about: str | None, facts: Mapping[str, Any]
) -> type[ModuleConfig]:
    torch = sys.modules.get("torch")
    if torch is None or not (isinstance(module, type) and issubclass(module, torch.nn.Module)):
        raise InvalidSettings([f"orch.model is given {module!r}: give it a class derived from torch.nn.Module"])
    for fact in facts:
        if fact not in FACTS:
            raise UnknownName("fact of a model", fact, FACTS)
    settings, problems = _settings(module)
    if problems:
        raise InvalidSettings([f"{module.__name__}: {problem}" for problem in problems])
    described = (inspect.cleandoc(module.__doc__).partition("\n")[0] if module.__doc__ else "").rstrip(".")
    called = name or _snake_case(module.__name__)
    # The loader of a user's files takes a class for theirs by its module; a class of a library is the caller's.
    is_theirs = module.__module__.partition(".")[0] == caller.partition(".")[0]
    namespace: dict[str, Any] = {
        "__module__": module.__module__ if is_theirs else caller,
        "__qualname__": module.__qualname__,
        "__doc__": module.__doc__,
        "__annotations__": {setting_name: hint for setting_name, (hint, _) in settings.items()},
        "name": called,
        "about": about or described or called.replace("_", " "),
        "wrapped": module,
        "arguments": tuple(settings),
        **{
            setting_name: setting(default, f"{setting_name} of {module.__name__}")
            for setting_name, (_, default) in settings.items()
        },
        **facts,
    }
    if "width" not in settings:
        namespace["__post_init__"] = _without_width
    made: type[ModuleConfig] = types.new_class(
        module.__name__, (ModuleConfig,), exec_body=lambda body: body.update(namespace)
    )
    return dataclasses.dataclass(frozen=True, kw_only=True, slots=True)(made)


def _without_width(config: ModuleConfig) -> None:
    """Give every model of a module without a width the same one, so that a scale's width does not identify it."""
    object.__setattr__(config, "width", 1)


def _settings(module: type[Any]) -> tuple[dict[str, tuple[Any, Any]], list[str]]:
    """Return the type and default of every setting, and what is wrong with the arguments of `__init__`."""
    _, *parameters = inspect.signature(module.__init__).parameters.values()
    if not parameters or parameters[0].kind not in _GIVEN_BY_POSITION or parameters[0].name == "width":
        return {}, ["its first argument must be the size of the vocabulary: def __init__(self, vocabulary, width=64)"]
    try:
        hints = typing.get_type_hints(module.__init__)
    except (NameError, TypeError):
        hints = {}
    settings: dict[str, tuple[Any, Any]] = {}
    problems = []
    for each in parameters[1:]:
        if each.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        if each.name == "width" and each.default is inspect.Parameter.empty:
            settings["width"] = int, 256
        elif each.default is inspect.Parameter.empty:
            problems.append(f"its argument {each.name} has no default: give it one")
        elif (hint := _plain_hint(hints.get(each.name), each.default)) is None:
            continue
        elif each.name != "width" and hasattr(ModuleConfig, each.name):
            problems.append(f"its argument {each.name} has the name of a fact that all models have: rename it")
        elif each.kind is inspect.Parameter.POSITIONAL_ONLY:
            problems.append(f"its argument {each.name} can only be given by position: let it be given by name")
        else:
            settings[each.name] = hint, float(each.default) if hint is float else each.default
    return settings, problems


def _plain_hint(hint: Any, default: Any) -> Any:
    """Return the type of a setting: the annotation if it is plain, else the type of the default; None if neither is.

    >>> _plain_hint(float, 1), _plain_hint(None, 2), _plain_hint(None, (1, 2)), _plain_hint(None, None)
    (<class 'float'>, <class 'int'>, tuple[int, ...], None)
    """
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        arms = [arm for arm in typing.get_args(hint) if arm is not type(None)]
        if len(arms) == 1 and arms[0] in _PLAIN:
            return arms[0] | None
    if hint in _PLAIN and default is not None:
        return hint
    if type(default) in _PLAIN:
        return type(default)
    if isinstance(default, tuple) and default and type(default[0]) in _PLAIN and len(set(map(type, default))) == 1:
        return tuple.__class_getitem__((type(default[0]), ...))
    return None


def _snake_case(name: str) -> str:
    """Return a class's name in small letters with underscores.

    >>> _snake_case("DeltaNet"), _snake_case("LSTMCell2"), _snake_case("S4")
    ('delta_net', 'lstm_cell2', 's4')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
