"""A model made from a class of modules: `orch.model(MyModule)`."""

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from orch.core.errors import InvalidSettings
from orch.core.settings import setting
from orch.models.config import ModelConfig, Shape, Vocabulary

if TYPE_CHECKING:
    from orch.models.network import Network

_PLAIN = (bool, int, float, str)


@dataclass(frozen=True, kw_only=True, slots=True)
class WrappedConfig(ModelConfig):
    """Settings of a module: the parameters of its constructor after the size of the vocabulary."""

    wrapped: ClassVar[Callable[..., Any]]
    """The class of modules."""
    module_settings: ClassVar[tuple[str, ...]] = ()

    @property
    def summary(self) -> str:
        """The settings other than the width that differ from their defaults."""
        defaults = {field.name: field.default for field in fields(self)}
        changed = [each for each in self.module_settings if each != "width" and getattr(self, each) != defaults[each]]
        return ", ".join(f"{each.replace('_', ' ')} {getattr(self, each)}" for each in changed)

    def module(self, vocabulary: Vocabulary) -> Any:
        """Make the module."""
        settings = {each: getattr(self, each) for each in self.module_settings}
        return type(self).wrapped(vocabulary.size, **settings)

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        return dict(_shapes(self, vocabulary))

    def network(self) -> "type[Network]":
        from orch.models.wrapped_network import WrappedNetwork

        return WrappedNetwork


@functools.lru_cache(maxsize=1 << 10)
def _shapes(config: WrappedConfig, vocabulary: Vocabulary) -> tuple[tuple[str, Shape], ...]:
    import torch

    with torch.device("meta"):
        module = config.module(vocabulary)
    return tuple((name, tuple(parameter.shape)) for name, parameter in module.named_parameters())


def model(module: Any, name: str | None = None) -> type[WrappedConfig]:
    """Make a model from a class of modules.

    Its constructor takes the size of the vocabulary and settings with plain defaults. Its `forward` maps tokens (B, T)
    to logits (B, T, V), or tokens and the positions of the ends (B) to logits (B, V).
    """
    parameters = list(inspect.signature(module).parameters.values())
    if not parameters:
        raise InvalidSettings([f"{module.__name__} takes no vocabulary size: define __init__(self, vocabulary, …)"])
    wrong = [each.name for each in parameters[1:] if type(each.default) not in _PLAIN]
    if wrong:
        raise InvalidSettings(
            [f"{module.__name__} has a setting {each} without a plain default: add one" for each in wrong]
        )
    defaults = {each.name: each.default for each in parameters[1:]}
    called = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", module.__name__).lower()
    namespace = {
        "__module__": module.__module__,
        "__qualname__": module.__qualname__,
        "__doc__": module.__doc__,
        "__annotations__": {each: type(value) for each, value in defaults.items()},
        "name": called,
        "about": ((module.__doc__ or "").strip().splitlines() or [called])[0],
        "wrapped": module,
        "module_settings": tuple(defaults),
        **{each: setting(value, f"{each.replace('_', ' ')} of {module.__name__}") for each, value in defaults.items()},
    }
    plain = type(module.__name__, (WrappedConfig,), namespace)
    return dataclass(frozen=True, kw_only=True, slots=True)(plain)
