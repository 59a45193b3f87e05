"""The classes that the names of models and tasks stand for: the built-in ones, and those that a user's files define."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from orch import models, tasks
from orch.models import ModelConfig
from orch.tasks import Task

PartType = type[Task] | type[ModelConfig]


@dataclass(frozen=True, eq=False)
class Definitions:
    """The classes of models and tasks, by name. `Catalogue` adds the sweeps, which are made of these."""

    models: Mapping[str, type[ModelConfig]]
    tasks: Mapping[str, type[Task]]

    @functools.cached_property
    def user_types(self) -> tuple[PartType, ...]:
        """The classes that are not built in, tasks first."""
        user_tasks = (each for each in self.tasks.values() if tasks.REGISTRY.get(each.name) is not each)
        user_models = (each for each in self.models.values() if models.REGISTRY.get(each.name) is not each)
        return (*user_tasks, *user_models)


BUILT_IN_DEFINITIONS = Definitions(models.REGISTRY, tasks.REGISTRY)
