"""The built-in sweeps: the files of `orch.sweeps.experiments`, by name."""

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType

from orch.sweeps import experiments
from orch.sweeps.cell import Cell
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results

ALL = "all"


@dataclass(frozen=True, slots=True)
class Sweep:
    """A module with `TITLE`, `REPRODUCES` and `cells`, imported when one of them is first needed."""

    name: str
    module: str

    @property
    def _source(self) -> ModuleType:
        return importlib.import_module(self.module)

    @property
    def in_all(self) -> bool:
        """True if `all` includes this sweep, that is, unless its file says `IN_ALL = False`."""
        return bool(getattr(self._source, "IN_ALL", True))

    @property
    def title(self) -> str:
        return str(self._source.TITLE)

    @property
    def reproduces(self) -> str:
        return str(self._source.REPRODUCES)

    def cells(self, scale: Scale, results: Results) -> Iterable[Cell]:
        """Return the cells of this sweep at a scale; some may depend on results."""
        found: Iterable[Cell] = self._source.cells(scale, results)
        return found


def _discover() -> Mapping[str, Sweep]:
    stems = (module.name for module in pkgutil.iter_modules(experiments.__path__))
    names = {stem.replace("_", "-"): stem for stem in stems}
    return MappingProxyType({name: Sweep(name, f"{experiments.__name__}.{stem}") for name, stem in names.items()})


SWEEPS = _discover()
