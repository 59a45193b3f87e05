"""The question of a search. Its id is a hash of its settings, so that the same question continues a stopped search."""

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orch.core.counted import counted
from orch.core.errors import InvalidSettings, OrchError
from orch.core.settings import canonical
from orch.search.objective import Objective
from orch.search.space import Space, parse_space
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.trial import TRAINER_REVISION, Trial, make_trial

MOST_LOOKED_AT = 512
"""The number of points that are examined to find one that can be trained."""
REDUCTION = 3
"""The factor by which every rung reduces the number of points."""


MOST_SEEDS, MOST_POINTS = 10_000, 1_000_000


def points_problems(num_points: int | None) -> list[str]:
    """Return what is wrong with a number of points; nothing if it is left to the search."""
    if num_points is None or 1 <= num_points <= MOST_POINTS:
        return []
    return [f"--points {num_points} is not a number of points: use 1 to {MOST_POINTS:,}"]


@dataclass(frozen=True, slots=True)
class Level:
    """The aim to find the smallest value of a setting at which the objective reaches a level."""

    name: str
    at_least: float


@dataclass(frozen=True, slots=True)
class SearchSpec:
    """The question that a search answers."""

    task: str
    model: str
    fixed: Mapping[str, Any]
    space: Space
    num_seeds: int = 1
    objective: Objective = field(default_factory=Objective)
    smallest: Level | None = None
    first_rung: int | None = None
    """Training steps before a point may be pruned; None means a ninth of its steps, and 0 prunes nothing."""
    sampler_seed: int = 0
    definitions: Definitions = field(default=BUILT_IN_DEFINITIONS, compare=False)
    """The models and tasks that can be named: the built-in ones, and those of a user's file."""

    def trials(self, params: Mapping[str, Any]) -> list[Trial]:
        """Return the trials of a point, one for each seed. It raises `OrchError` if its settings cannot be combined."""
        settings = {**self.fixed, **params}
        return [
            make_trial(self.task, self.model, self.definitions, **settings, init_seed=seed, data_seed=seed)
            for seed in range(self.num_seeds)
        ]

    @property
    def example(self) -> Trial:
        """A trial of the first point that can be trained. It raises `OrchError` if there seems to be none."""
        first: OrchError | None = None
        for params in itertools.islice(self.space.points(), MOST_LOOKED_AT):
            try:
                return self.trials(params)[0]
            except OrchError as error:
                first = first or error
        assert first is not None, "a space has points"
        raise first

    @property
    def most_steps(self) -> int:
        """The training steps of a trial; the largest number if it is varied."""
        if "steps" in self.space.names:
            return int(max(self.space["steps"].ends))
        return self.example.steps

    @property
    def rungs(self) -> tuple[int, ...]:
        """The training steps at which points are compared."""
        trial, steps = self.example, self.most_steps
        first = self.first_rung
        if first is None:
            first = trial.eval_every * max(1, round(steps / REDUCTION**2 / trial.eval_every))
        rungs = []
        while 0 < first < steps:
            rungs.append(first)
            first *= REDUCTION
        return tuple(rungs)

    def problems(self) -> list[str]:
        """Return everything wrong with the question, each as a sentence that names the remedy.

        A question whose space is empty is checked as far as possible without one.
        """
        problems = []
        if self.num_seeds < 1:
            problems.append(f"--seeds {self.num_seeds} is not enough: use 1 or more")
        if self.num_seeds > MOST_SEEDS:
            problems.append(f"--seeds {self.num_seeds} is too many: use at most {MOST_SEEDS:,}")
        if self.first_rung is not None and self.first_rung < 0:
            problems.append(f"--grace {self.first_rung} is negative: use 0 to prune nothing, or a number of steps")
        for name in ("init_seed", "data_seed"):
            if name in self.fixed:
                problems.append(f"{name} is one of --seeds: leave out --{name.replace('_', '-')}")
        if self.smallest is not None and self.space.dimensions:
            problems += self._problems_of(self.smallest)
        if not problems and self.space.dimensions:
            try:
                problems += self.objective.problems(self.example)
            except InvalidSettings as error:
                problems += error.problems
        return problems

    def _problems_of(self, level: Level) -> list[str]:
        if level.name not in self.space.names:
            return [f"--smallest {level.name}: it is not varied: add --vary {level.name}=… with its values in order"]
        problems = []
        if not self.space[level.name].is_ordered:
            remedy = f"give --vary {level.name}=1,2,4"
            problems.append(f"--smallest {level.name} needs a list of increasing numbers: {remedy}")
        if not self.objective.maximised:
            metric = self.objective.metric
            problems.append(f"--smallest needs a metric that should be large, not {metric}: choose an accuracy")
        return problems

    @property
    def id(self) -> str:
        """A hash of everything that could change the answer, including defaults and revisions of the code."""
        return hashlib.sha256(json.dumps(self._identity(), sort_keys=True).encode()).hexdigest()[:10]

    def _identity(self) -> dict[str, Any]:
        trial = self.example
        aside = {*self.space.names, "init_seed", "data_seed", "task", "model"}
        settings = canonical(trial.task) | canonical(trial.model) | trial.to_dict()
        return self.to_dict() | {
            "fixed": {name: value for name, value in settings.items() if name not in aside},
            "revisions": [trial.task.revision, trial.model.revision, TRAINER_REVISION],
            "rungs": self.rungs,
        }

    @property
    def description(self) -> str:
        what = f"the {self.objective.description} over {counted(self.num_seeds, 'seed')}"
        where = f"{self.model} on {self.task} by {self.space}"
        if self.smallest is None:
            return f"{where}: {'highest' if self.objective.maximised else 'lowest'} {what.removeprefix('the ')}"
        name = self.smallest.name.replace("_", " ")
        return f"{where}: smallest {name} for which {what} is at least {self.smallest.at_least:g}"

    def to_dict(self) -> dict[str, Any]:
        level = self.smallest
        return {
            "task": self.task,
            "model": self.model,
            "fixed": dict(self.fixed),
            "vary": [str(each) for each in self.space.dimensions],
            "seeds": self.num_seeds,
            "metric": self.objective.metric,
            "objective": self.objective.aggregate,
            "smallest": None if level is None else {"name": level.name, "at_least": level.at_least},
            "grace": self.first_rung,
            "sampler_seed": self.sampler_seed,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], definitions: Definitions = BUILT_IN_DEFINITIONS) -> "SearchSpec":
        task, model, fixed = values["task"], values["model"], values["fixed"]
        level = values["smallest"]
        return cls(
            task=task,
            model=model,
            fixed=fixed,
            space=parse_space(values["vary"], task, model, fixed, definitions),
            num_seeds=values["seeds"],
            objective=Objective(values["metric"], values["objective"]),
            smallest=None if level is None else Level(level["name"], level["at_least"]),
            first_rung=values["grace"],
            sampler_seed=values["sampler_seed"],
            definitions=definitions,
        )
