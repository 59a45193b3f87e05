"""The global state of a process that a trial's numbers may depend on, and what a user's code changes in it.

It reads a few private attributes of torch, for which there is no public name: `tests/running/test_isolation.py` changes
each of them, and fails if the change is not noticed.
"""

import builtins
import functools
import inspect
import math
import os
import random
import signal
import sys
import warnings
from collections.abc import Iterator
from types import MappingProxyType, ModuleType
from typing import Any

import numpy
import torch
from torch import overrides
from torch.nn.modules import module as torch_module
from torch.optim import optimizer as torch_optimizer
from torch.utils._device import DeviceContext

from orch.usercode.loading import PREFIX, current_folder

CHANGES = {
    "dtype": "changes torch's default dtype: give dtype= where a tensor is made instead",
    "device": "changes torch's default device: give device= where a tensor is made instead",
    "threads": "sets the number of threads: leave it out, because every worker has one core",
    "flags": "changes torch's deterministic or benchmark flags: leave it out",
    "precision": "changes the precision of arithmetic (of matrix products, or of tiny numbers): leave it out",
    "gradients": "switches gradients on or off for everything that follows: use it as `with torch.no_grad():`",
    "anomalies": "switches anomaly detection or autocast on: use it as `with torch.autograd.detect_anomaly():`",
    "hooks": "registers a hook for all modules or optimisers: register it on a module of the model instead",
    "modes": "leaves a mode of torch switched on: use it in a `with` statement",
    "seed": "seeds torch's random numbers: leave it out, because every step of a trial is seeded",
    "random": "uses global random numbers of Python or numpy, which a resumed trial cannot repeat: use torch's",
    "environment": "changes os.environ: set the variable before orch is started",
    "folder": "changes the current folder: use absolute paths instead",
    "warnings": "changes the filters of warnings: use it within `with warnings.catch_warnings():`",
    "signals": "changes how the process handles signals: leave it out",
    "path": "changes where Python finds modules: install the package instead",
}
"""What may change, and how a sentence about it ends that begins with who changed it."""
CHANGED_BY_IMPORTS = {"environment", "random", "warnings"}
"""What libraries change when they are imported, which torch does at odd moments."""
HARMLESS_WHILE_LOADING = {"seed", "random", "warnings", "path"}
"""What the top of a file may change, because nothing is trained while it is loaded."""
_NOT_ZERO = sys.float_info.min / 4
"""A number so tiny that it becomes 0 in arithmetic that flushes denormal numbers."""
_active_modes: Any = overrides._get_current_function_mode_stack
_SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2]
_HOOKS = [
    registry
    for owner in (torch_module, torch_optimizer)
    for name, registry in vars(owner).items()
    if name.startswith("_global_") and isinstance(registry, dict)
]
_PACKAGES = ("torch.nn.", "torch.optim.", "torch.autograd.", "torch.linalg.", "torch.fft.", "torch.random.", "orch.")
"""Packages of which all loaded modules are looked at for functions that were replaced."""
_MODULES = (builtins, math, random, numpy, numpy.random, torch)
_AT_START = {
    "dtype": torch.float32,
    "device": torch.device("cpu"),
    "flags": (False, False, False, False, True),
    "gradients": (True, False),
    "anomalies": (False, False, False),
    "hooks": [()] * len(_HOOKS),
    "modes": ([], 0),
}
"""The state of a process that has just imported torch."""
_Namespace = MappingProxyType[str, Any] | dict[str, Any]


def read_state() -> dict[str, Any]:
    """Return the global state but for the functions of libraries. It takes well under a millisecond."""
    cudnn = torch.backends.cudnn
    return {
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "flags": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            cudnn.deterministic,
            cudnn.benchmark,
            cudnn.enabled,
        ),
        "precision": (torch.get_float32_matmul_precision(), cudnn.allow_tf32, _NOT_ZERO * 2 > 0, str(numpy.geterr())),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "anomalies": (torch.is_anomaly_enabled(), torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
        "hooks": [tuple(registry) for registry in _HOOKS],
        "modes": (
            [mode for mode in _active_modes() if not isinstance(mode, DeviceContext)],
            torch._C._len_torch_dispatch_stack(),
        ),
        "seed": torch.initial_seed(),
        "random": (random.getstate(), numpy.random.get_state()[1].tobytes()),  # type: ignore[index]
        "environment": dict(os.environ),
        "folder": current_folder(),
        "warnings": list(warnings.filters),
        "signals": [signal.getsignal(number) for number in _SIGNALS],
        "path": (list(sys.path), list(sys.meta_path), list(sys.path_hooks)),
        "imported": len(sys.modules),
    }


class SharedFunctions:
    """The functions, classes and modules of libraries and of orch that any code may call, as they were at first."""

    def __init__(self) -> None:
        self._modules: dict[str, Any] = {
            name: each for name, each in sys.modules.items() if not name.startswith(PREFIX)
        }
        self._spaces = dict(_namespaces())
        self._names = [
            (space, f"{place}.{name}", name, value)
            for place, space in self._spaces.items()
            for name, value in space.items()
            if _can_be_called(value)
        ]
        self._num_names = {place: len(space) for place, space in self._spaces.items()}

    def replaced(self, by_users: bool = False) -> list[str]:
        """Return the names that stand for something else now. What was found once is taken as it is from then on.

        With `by_users`, only those count that now stand for something which a user's code defines: libraries may
        replace functions when they are imported.
        """
        modules = [name for name, module in self._modules.items() if sys.modules.get(name) is not module]
        changed = [each for each in self._names if each[0].get(each[2]) is not each[3]]
        if changed or modules:
            self._names = [(space, full, name, space.get(name)) for space, full, name, _ in self._names]
            self._modules |= {name: sys.modules.get(name) for name in modules}
        changed += self._added()
        names = [full for space, full, name, _ in changed if not by_users or _is_users(space.get(name))]
        return list(dict.fromkeys([*modules, *names]))

    def _added(self) -> list[tuple[_Namespace, str, str, Any]]:
        """Return what was added to classes, where it may hide what they inherit."""
        added: list[tuple[_Namespace, str, str, Any]] = []
        for place, space in self._spaces.items():
            if len(space) != self._num_names[place] and isinstance(space, MappingProxyType):
                self._num_names[place] = len(space)
                known = {name for each, _, name, _ in self._names if each is space}
                added += [
                    (space, f"{place}.{name}", name, None)
                    for name, value in space.items()
                    if name not in known and _can_be_called(value)
                ]
        return added


def _can_be_called(value: Any) -> bool:
    return callable(value) or isinstance(value, (property, classmethod, staticmethod))


def _is_users(value: Any) -> bool:
    return (getattr(value, "__module__", None) or "").startswith(PREFIX)


def _namespaces() -> Iterator[tuple[str, _Namespace]]:
    """Yield the modules that are looked at, and the classes that they define, each with the names in it."""
    seen = set()
    modules = [module for name, module in sys.modules.items() if f"{name}.".startswith(_PACKAGES)]
    for module in dict.fromkeys((*_MODULES, *modules)):
        if not isinstance(module, ModuleType):
            continue
        yield module.__name__, vars(module)
        for value in [each for each in vars(module).values() if inspect.isclass(each)]:
            if value not in seen and (value.__module__ == module.__name__ or value is torch.Tensor):
                seen.add(value)
                yield f"{value.__module__}.{value.__qualname__}", vars(value)


class StateChanges:
    """Tells what has changed in the global state since it was made, or since it was asked last."""

    def __init__(self, since_start: bool = False) -> None:
        """Begin now or, as far as torch's settings are concerned, at the start of the process."""
        self._functions = SharedFunctions()
        self._before = read_state() | (_AT_START if since_start else {})

    def find(self, while_loading: bool = False) -> list[str]:
        """Return what has changed, as ends of sentences, but for what libraries change while they are imported."""
        now, before = read_state(), self._before
        self._before = now
        has_imported = now["imported"] != before["imported"]
        ignored = (CHANGED_BY_IMPORTS if has_imported else set()) | (HARMLESS_WHILE_LOADING if while_loading else set())
        found = [text for key, text in CHANGES.items() if key not in ignored and now[key] != before[key]]
        # torch replaces a few names when its settings change.
        replaced = self._functions.replaced(by_users=has_imported or bool(found))
        return [*found, *([text_about(replaced)] if replaced else [])]


def text_about(names: list[str]) -> str:
    """Return the end of a sentence about functions, classes or modules that were replaced."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"replaces {names[0]}{more}, which all code shares: call a function of your own instead"


@functools.cache
def changes_in_this_process() -> StateChanges:
    """Return the watch over this process, which begins at the first call: make it before a user's code is loaded."""
    return StateChanges()
