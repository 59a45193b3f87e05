"""Sequence models, one folder each: `config.py` (settings and facts, no torch) and `network.py` (the module).

Suffixes of names are shapes, throughout this package:
  K trials stacked side by side    B samples                  T tokens of a sequence (padding included)
  R tokens that can be read        V whole vocabulary         P positions, all T x B of them
  D embedding width (= H)          H state width              b block size, n blocks (b * n = H)
  F factors                        G gates, or any last axis  N rows of several trials, K x B of them
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from orch.models.config import ModelConfig, Vocabulary

_SHARED = ("bilinear_family", "compiled", "gpu_kernels", "recurrence", "residual", "token_rnn")
"""Folders of code that several models share."""


def _discover() -> Mapping[str, type[ModelConfig]]:
    registry = {}
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg and module.name not in _SHARED:
            config = importlib.import_module(f"{__name__}.{module.name}.config").Config
            registry[module.name] = config
    return MappingProxyType(registry)


REGISTRY = _discover()

__all__ = ["REGISTRY", "ModelConfig", "Vocabulary"]
