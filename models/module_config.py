"""`orch.model`: the settings of a model, made from an ordinary `nn.Module` class. No torch is imported here."""

import dataclasses
import functools
import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from orch.core.errors import InvalidSettings
from orch.core.settings import setting
from orch.models.config import ModelConfig, Shape, Vocabulary

if TYPE_CHECKING:
    from orch.models.network import Network

_PLAIN = (bool, int, float, str)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModuleConfig(ModelConfig):
    """Settings that are the arguments of a module's `__init__`, after the size of the vocabulary."""

    wrapped: ClassVar[type[Any]]
    """The module's class."""
    arguments: ClassVar[tuple[str, ...]] = ()

    @property
    def summary(self) -> str:
        """The settings other than the width that differ from their defaults."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        changed = [each for each in self.arguments if each != "width" and getattr(self, each) != defaults[each]]
        return ", ".join(f"{each.replace('_', ' ')} {getattr(self, each)}" for each in changed)

    def make_module(self, vocabulary: int) -> Any:
        """Make a module with these settings."""
        return self.wrapped(vocabulary, **{name: getattr(self, name) for name in self.arguments})

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        return dict(_shapes(self, vocabulary))

    def network(self) -> "type[Network]":
        return _network()


@functools.lru_cache(maxsize=1 << 10)
def _shapes(config: ModuleConfig, vocabulary: Vocabulary) -> tuple[tuple[str, Shape], ...]:
    import torch

    with torch.device("meta"):
        module = config.make_module(vocabulary.size)
    return tuple((name, tuple(parameter.shape)) for name, parameter in module.named_parameters())


@functools.cache
def _network() -> "type[Network]":
    import torch

    from orch.models.network import PerTrial

    class OfModule(PerTrial):
        @classmethod
        def skeleton(cls, config: Any, vocabulary: Any) -> Any:
            return config.make_module(vocabulary.size)

        def forward(self, tokens_KBT: Any, end_KB: Any) -> Any:
            module = self.__dict__["_skeleton"]
            takes_ends = len(inspect.signature(module.forward).parameters) > 1
            readable_KBT = tokens_KBT.clamp(max=self.vocabulary.readable - 1)
            members = zip(*(self[name].unbind() for name in self.names), strict=True)
            logits = []
            for parameters, tokens_BT, end_B in zip(members, readable_KBT, end_KB, strict=True):
                given = (tokens_BT, end_B) if takes_ends else (tokens_BT,)
                output = torch.func.functional_call(module, dict(zip(self.names, parameters, strict=True)), given)
                logits.append(output if output.dim() == 2 else output[torch.arange(len(end_B)), end_B])
            return torch.stack(logits)

    return OfModule


def model(module: Any = None, /, *, name: str | None = None, about: str | None = None, **facts: Any) -> Any:
    """Make a model of an `nn.Module` class: call it with the class, or write it as a decorator above the class.

    The first argument of the module's `__init__` is the size of the vocabulary; its further arguments have plain
    defaults and are the model's settings. `forward` maps tokens (B, T) to logits (B, T, V), or tokens and ends (B) to
    logits (B, V).
    """
    if module is None:
        return functools.partial(model, name=name, about=about, **facts)
    parameters = list(inspect.signature(module).parameters.values())
    if not parameters:
        raise InvalidSettings([f"{module.__name__} takes no vocabulary: define __init__(self, vocabulary, width=64)"])
    wrong = [each.name for each in parameters[1:] if type(each.default) not in _PLAIN]
    if wrong:
        raise InvalidSettings(
            [f"{module.__name__}: its argument {each} has no plain default: add one" for each in wrong]
        )
    defaults = {each.name: each.default for each in parameters[1:]}
    called = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", module.__name__).lower()
    namespace = {
        "__module__": module.__module__,
        "__qualname__": module.__qualname__,
        "__doc__": module.__doc__,
        "__annotations__": {each: type(value) for each, value in defaults.items()},
        "name": called,
        "about": about or ((module.__doc__ or "").strip().splitlines() or [called])[0],
        "wrapped": module,
        "arguments": tuple(defaults),
        **{each: setting(value, f"{each} of {module.__name__}") for each, value in defaults.items()},
        **facts,
    }
    made: type[ModuleConfig] = type(module.__name__, (ModuleConfig,), namespace)
    return dataclass(frozen=True, kw_only=True, slots=True)(made)
