"""The classes that the names of models and tasks stand for: the built-in ones, and those that a user's files define."""

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orch import models, tasks
from orch.core.errors import InvalidSettings
from orch.core.settings import field_types, to_dict
from orch.models import ModelConfig
from orch.tasks import Task

PartType = type[Task] | type[ModelConfig]


@dataclass(frozen=True, eq=False)
class Definitions:
    """The classes of models and tasks, by name. `Catalogue` adds the sweeps, which are made of these."""

    models: Mapping[str, type[ModelConfig]]
    tasks: Mapping[str, type[Task]]
    made_tasks: Mapping[str, Task] = field(default_factory=dict, kw_only=True)
    """Tasks that a user's file makes with settings of its own, such as an automaton from a table, by their names."""

    @property
    def task_names(self) -> list[str]:
        """Names that a command line has for tasks."""
        return [*self.tasks, *self.made_tasks]

    @functools.cached_property
    def user_types(self) -> tuple[PartType, ...]:
        """The classes that are not built in, tasks first."""
        user_tasks = (each for each in self.tasks.values() if tasks.REGISTRY.get(each.name) is not each)
        user_models = (each for each in self.models.values() if models.REGISTRY.get(each.name) is not each)
        return (*user_tasks, *user_models)


BUILT_IN_DEFINITIONS = Definitions(models.REGISTRY, tasks.REGISTRY)


def name_made_tasks(made: Iterable[Task], known: Mapping[str, type[Task]]) -> dict[str, Task]:
    """Return the tasks that a user's file makes by their own names, or by summaries where a name is taken."""
    distinct = list(dict.fromkeys(task for task in made if task.own_name))
    times = Counter(task.own_name for task in distinct)
    return {
        task.summary if times[task.own_name] > 1 or task.own_name in known else task.own_name: task for task in distinct
    }


def described_task(name: str, settings: Mapping[str, Any], known: Definitions) -> tuple[str, dict[str, Any]]:
    """Return the name of a task's class and all settings of a task that a command line names.

    A task that the user's file makes is meant by its own name, and by the name of its class if no setting describes
    another one.
    """
    of_class = {own: task for own, task in known.made_tasks.items() if task.name == name}
    if name in known.made_tasks:
        task = known.made_tasks[name]
    elif not of_class or settings.keys() & field_types(known.tasks[name]).keys():
        return name, dict(settings)
    elif len(of_class) == 1:
        (task,) = of_class.values()
    else:
        raise InvalidSettings([f"the file makes several tasks of the kind {name}: name one of {', '.join(of_class)}"])
    return task.name, {**to_dict(task), **settings}
