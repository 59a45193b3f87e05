"""The sweeps there are, and what they expand to: pure, from files of `orch.sweeps.experiments` or of the user's."""

import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType

from orch.core.errors import UnknownName
from orch.sweeps import experiments
from orch.sweeps.cell import Cell
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results, Waiting
from orch.sweeps.trial import Trial

ALL = "all"


@dataclass(frozen=True, slots=True)
class Sweep:
    """A module with `TITLE`, `REPRODUCES` and `cells`, imported when something of it is asked for."""

    name: str
    module: str

    @property
    def _source(self) -> ModuleType:
        return importlib.import_module(self.module)

    @property
    def in_all(self) -> bool:
        """Whether `all` includes it: true unless its file says `IN_ALL = False`."""
        return bool(getattr(self._source, "IN_ALL", True))

    @property
    def title(self) -> str:
        return self._source.TITLE

    @property
    def reproduces(self) -> str:
        return self._source.REPRODUCES

    def cells(self, scale: Scale, results: Results) -> Iterable[Cell]:
        return self._source.cells(scale, results)


def _discover() -> dict[str, Sweep]:
    stems = (module.name for module in pkgutil.iter_modules(experiments.__path__))
    names = {stem.replace("_", "-"): stem for stem in stems}
    return {name: Sweep(name, f"{experiments.__name__}.{stem}") for name, stem in names.items()}


SWEEPS: dict[str, Sweep] = _discover()


def resolve(names: Iterable[str]) -> list[str]:
    """The sweeps these names stand for, each once; `all` is every sweep of the paper's.

    A name that ends in `.py` is a file of the user's. It is read now, and from now on its sweep, models and tasks are
    known by name, in place of those of files that were read before.
    """
    found: dict[str, None] = {}
    for name in read_files(names):
        if name != ALL and name not in SWEEPS:
            raise UnknownName("sweep", name, [*SWEEPS, ALL])
        found |= dict.fromkeys(sorted(each for each in SWEEPS if SWEEPS[each].in_all) if name == ALL else [name])
    return list(found)


def read_files(names: Iterable[str]) -> list[str]:
    """The names with those of sweeps in place of the user's files, which are read and known by name from now on."""
    names = list(names)
    paths = [name for name in names if name.endswith(".py")]
    if not paths:
        return names
    from orch.usercode import UserCode, all_problems, use

    codes = dict(zip(paths, all_problems(UserCode.read, paths), strict=True))
    use(codes.values())
    return [codes[name].name if name in codes else name for name in names]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A trial, once, with all the sweeps that ask for it."""

    id: str
    trial: Trial
    sweeps: list[str]


@dataclass(frozen=True, slots=True)
class Expansion:
    wanted: dict[str, Wanted] = field(default_factory=dict)
    """By trial id, in the order of the sweeps."""
    held: dict[Waiting, list[str]] = field(default_factory=dict)
    """What cannot be spelled out yet, with the sweeps that ask for it."""

    @property
    def waiting(self) -> Counter[str]:
        """How many trials wait, by what they wait for."""
        return Counter(waiting.reason for waiting in self.held)


def expand(names: Iterable[str], scale: Scale, results: Results) -> Expansion:
    """Everything these sweeps ask for at a scale. What several ask for is there once."""
    expansion = Expansion()
    for name in resolve(names):
        for asked in (trial for cell in SWEEPS[name].cells(scale, results) for trial in cell.trials):
            if isinstance(asked, Waiting):
                sweeps = expansion.held.setdefault(asked, [])
            else:
                trial_id = asked.id
                wanted = expansion.wanted.get(trial_id)
                if wanted is None:
                    wanted = expansion.wanted[trial_id] = Wanted(trial_id, asked, [])
                sweeps = wanted.sweeps
            if name not in sweeps:
                sweeps.append(name)
    return expansion
