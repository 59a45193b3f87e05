"""Faults, one file each. A file's name, with hyphens, is the fault's; its docstring says what the fault is."""

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos.harness import Round


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault: what it does to a round, and where it can be injected."""

    name: str
    about: str
    run: Callable[[Round], None]
    on: tuple[str, ...] = ("disk",)
    """The places of the store for which it means something."""
    ray: bool = False
    """Whether it disturbs real runs on Ray; otherwise plain processes that run the worker's code."""

    needs: Callable[[], str | None] = lambda: None
    """Returns what is missing here that it needs."""

    @functools.cached_property
    def missing(self) -> str | None:
        """Why it cannot be injected here; None if it can. Asked once: a seed means the same all through a run."""
        return self.needs()


def _load(stem: str) -> Fault:
    module = importlib.import_module(f"{__name__}.{stem}")
    about = " ".join((module.__doc__ or "").partition("\n\n")[0].split())
    options = {key: getattr(module, key.upper()) for key in ("on", "ray", "needs") if hasattr(module, key.upper())}
    return Fault(name=stem.replace("_", "-"), about=about, run=module.run, **options)


FAULTS = {fault.name: fault for fault in (_load(module.name) for module in pkgutil.iter_modules(__path__))}
"""Every fault by its name."""
