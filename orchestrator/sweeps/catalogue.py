"""The catalogue: every model, task and sweep that can be named. It never changes; a user's files make another one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orch import models, tasks
from orch.core.errors import UnknownName
from orch.sweeps.definitions import Definitions
from orch.sweeps.registry import ALL, SWEEPS, Sweep


@dataclass(frozen=True, eq=False)
class Catalogue(Definitions):
    """The models, tasks and sweeps that can be named. `orch.usercode.make_catalogue` adds those of a user's files."""

    sweeps: Mapping[str, Sweep]


BUILT_IN = Catalogue(models.REGISTRY, tasks.REGISTRY, SWEEPS)


def resolve(names: Iterable[str], catalogue: Catalogue = BUILT_IN) -> list[str]:
    """Return the sweeps that these names stand for, each once. `all` stands for every sweep of the paper."""
    found: dict[str, None] = {}
    for name in names:
        if name == ALL:
            found |= dict.fromkeys(sorted(each.name for each in catalogue.sweeps.values() if each.in_all))
        elif name in catalogue.sweeps:
            found[name] = None
        else:
            raise UnknownName("sweep", name, [*catalogue.sweeps, ALL])
    return list(found)
