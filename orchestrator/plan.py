"""What sweeps come to: every trial once, what is done and what is left, and about how long that takes.

No torch and no Ray. A store is read where there is one; nothing is written.
"""

import enum
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator import selection
from orchestrator.errors import OrchError, UnknownName
from orchestrator.failure import ENDED_WELL, Outcome
from orchestrator.scales import SCALES
from orchestrator.selection import Results
from orchestrator.sweeps import SWEEPS, expand, resolve
from orchestrator.trial import Trial
from orchestrator.where import parse_where

if TYPE_CHECKING:
    from pyarrow import Table

    from orchestrator.store import Store


class State(enum.StrEnum):
    DONE = "done"
    FAILED = "failed"
    """The last attempt at it went wrong; it is tried again."""
    TO_DO = "to do"
    WAITING = "waiting"
    """Its learning rate comes from results that are not there yet."""


class Basis(enum.StrEnum):
    """What an estimate rests on, the best first."""

    MEASURED = "measured"
    """Finished trials of the same model, size and task."""
    SCALED = "scaled"
    """Finished trials of the same model in other sizes or on other tasks, in proportion to the arithmetic."""
    ASSUMED = "assumed"
    """The arithmetic alone, at assumed rates."""


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    id: str
    trial: Trial
    sweeps: tuple[str, ...]
    """Those of the plan that want it."""
    others: tuple[str, ...]
    """Further sweeps that want it at the same scale."""
    state: State
    seconds: float
    """How long it should take on one device, alone or as its share of a pack; nothing for what is done."""
    basis: Basis

    @property
    def shared(self) -> bool:
        return len(self.sweeps) + len(self.others) > 1

    @property
    def left(self) -> bool:
        """Whether it would be run now."""
        return self.state in (State.TO_DO, State.FAILED)


@dataclass(frozen=True, slots=True)
class Plan:
    sweeps: tuple[str, ...]
    scale: str
    trials: list[PlannedTrial]
    waiting: Counter[str]
    """How many trials wait, by what they wait for."""
    device: str
    """The kind of device that the estimates are for."""

    @property
    def num_waiting(self) -> int:
        return self.waiting.total()

    @property
    def num_saved(self) -> int:
        """How many more trials there would be if the sweeps did not share them."""
        return sum(len(planned.sweeps) - 1 for planned in self.trials)

    @property
    def hours(self) -> float:
        """Device-hours for what is left."""
        return sum(self.hours_by_basis.values())

    @property
    def hours_by_basis(self) -> dict[Basis, float]:
        seconds = dict.fromkeys(Basis, 0.0)
        for planned in self.trials:
            if planned.left:
                seconds[planned.basis] += planned.seconds
        return {basis: total / 3600 for basis, total in seconds.items()}

    @property
    def counts(self) -> dict[str, Any]:
        return _count(self.trials)

    def by_model_and_task(self) -> list[dict[str, Any]]:
        groups: dict[tuple[str, str], list[PlannedTrial]] = defaultdict(list)
        for planned in self.trials:
            groups[planned.trial.model.name, planned.trial.task.name].append(planned)
        return [{"model": model, "task": task} | _count(group) for (model, task), group in sorted(groups.items())]


def _count(trials: Sequence[PlannedTrial]) -> dict[str, Any]:
    states = Counter(planned.state for planned in trials)
    return {
        "trials": len(trials),
        "shared": sum(planned.shared for planned in trials),
        **{state.replace(" ", "_"): states[state] for state in State},
        "hours": sum(planned.seconds for planned in trials if planned.left) / 3600,
    }


def make_plan(names: Iterable[str], scale: str, where: Iterable[str], store: "Store | None") -> Plan:
    """These sweeps (`all` for all) at a scale, narrowed by conditions, against what a store has."""
    if scale not in SCALES:
        raise UnknownName("scale", scale, SCALES)
    asked, matches = resolve(names), parse_where(where).matches
    trials = _read(store, "trials", [*selection.COLUMNS, *_MEASURED, *_kind_columns()]) if store is not None else None
    done = set() if trials is None else set(trials["trial_id"].to_pylist())
    failed = set() if store is None else failed_trials(store)
    estimator = Estimator(trials)
    # Every sweep is expanded, to know which trials serve others as well.
    results = Results.none() if trials is None else Results.of_table(trials)
    expansion = expand([*asked, *(name for name in SWEEPS if name not in asked)], SCALES[scale], results)

    def planned(trial_id: str, trial: Trial, wanted_by: list[str], state: State) -> PlannedTrial:
        sweeps = tuple(name for name in wanted_by if name in asked)
        others = tuple(name for name in wanted_by if name not in asked)
        estimate = (0.0, Basis.MEASURED) if state is State.DONE else estimator.estimate(trial)
        return PlannedTrial(trial_id, trial, sweeps, others, state, *estimate)

    found = []
    for each in expansion.wanted.values():
        if each.sweeps[0] in asked and matches(each.trial):
            state = State.DONE if each.id in done else State.FAILED if each.id in failed else State.TO_DO
            found.append(planned(each.id, each.trial, each.sweeps, state))
    waiting: Counter[str] = Counter()
    for held, wanted_by in expansion.held.items():
        if wanted_by[0] in asked and (held.trial is None or matches(held.trial)):
            waiting[held.reason] += 1
            if held.trial is not None:
                found.append(planned("", held.trial, wanted_by, State.WAITING))
    return Plan(tuple(asked), scale, found, waiting, estimator.device)


def _read(store: "Store", table: str, columns: Sequence[str]) -> "Table | None":
    return store.read(table, columns=list(dict.fromkeys(columns))) if store.exists() else None


def failed_trials(store: "Store") -> set[str]:
    """Trials whose last attempt went wrong. One that was interrupted, or is under way, is not among them."""
    attempts = _read(store, "attempts", ["trial_id", "event", "outcome", "at"])
    if attempts is None:
        return set()
    fine = {None, Outcome.INTERRUPTED, *ENDED_WELL}
    columns = (attempts["at"].cast("int64"), attempts["event"], attempts["trial_id"], attempts["outcome"])
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    last = {}
    for *_, trial_id, outcome in sorted(rows, key=lambda row: (row[0], row[1] == "end")):
        last[trial_id] = outcome
    return {trial_id for trial_id, outcome in last.items() if outcome not in fine}


@dataclass(frozen=True, slots=True)
class Rates:
    """What a device does, roughly: only where no finished trial tells better."""

    flops_per_second: float
    seconds_per_step: float
    seconds_per_token: float
    """For each position that a forward pass goes through, one after the other."""
    seconds_per_parameter: float
    """For the optimiser."""


ASSUMED_IN = "November 2026"
ASSUMED = {
    # Fits the training steps of all models at width 64 and 256 within a factor of 2, on one core of a cloud server.
    "cpu": Rates(40e9, 1e-3, 45e-6, 2.7e-9),
    # Not measured: a data-centre GPU, where small models mostly wait for one kernel after another to start.
    "gpu": Rates(5e12, 2e-3, 100e-6, 3e-11),
}


def estimate_seconds(trial: Trial, steps: float | None = None, device: str = "cpu") -> float:
    """How long a trial of `steps` (else its budget) takes by arithmetic: training, validations and tests."""
    rates = ASSUMED["cpu" if device == "cpu" else "gpu"]
    steps = trial.steps if steps is None else steps
    per_step, per_validation, tests = _seconds(_costs(trial), rates)
    return steps * per_step + math.ceil(steps / trial.eval_every) * per_validation + tests


Pass = tuple[int, int]
"""Operations and tokens of one forward pass."""


def _seconds(costs: tuple[Pass, Pass, Pass, int], rates: Rates) -> tuple[float, float, float]:
    def forward(cost: Pass) -> float:
        return cost[0] / rates.flops_per_second + cost[1] * rates.seconds_per_token

    batch, validation, tests, num_trained = costs
    update = rates.seconds_per_step + num_trained * rates.seconds_per_parameter
    return update + 3 * forward(batch), forward(validation), forward(tests)


def _costs(trial: Trial) -> tuple[Pass, Pass, Pass, int]:
    """A training batch, a validation and all tests, and how many parameters are trained."""
    model, vocabulary = trial.model, trial.vocabulary

    def forward(samples: int, inputs: int) -> Pass:
        tokens = trial.task.num_tokens(inputs)
        return model.forward_flops(vocabulary, samples, tokens), tokens

    batch = min(trial.batch_size, trial.train_examples or trial.batch_size)
    tests = [forward(trial.test_samples, length) for length in trial.tested_lengths]
    shapes = model.shapes(vocabulary).items()
    return (
        forward(batch, trial.max_inputs),
        forward(trial.validation_samples, trial.max_inputs),
        (sum(flops for flops, _ in tests), sum(tokens for _, tokens in tests)),
        sum(math.prod(shape) for name, shape in shapes if model.is_trained(name)),
    )


_MEASURED = ("device", "seconds", "steps_trained", "config")
_IN_A_PACK = {"learning_rate", "init_seed", "data_seed", "eval_seed", "curve_lengths"}


def _kind_columns() -> list[str]:
    """The settings in which trials must agree to cost the same."""
    from orchestrator.store.columns import SETTINGS

    return [column.name for column in SETTINGS if column.name not in _IN_A_PACK]


class Estimator:
    """How long trials take, by the arithmetic corrected with what finished trials took.

    A trial's estimate is `estimate_seconds` at the steps it is expected to train, times measured over computed time
    of the trials most like it: what ran before is expected to take as long again, other sizes in proportion.
    """

    def __init__(self, trials: "Table | None" = None, device: str | None = None):
        """`device` is the kind to estimate for; else the one on which the finished trials spent most of their time."""
        groups = [] if trials is None else list(_finished_groups(trials))
        spent: dict[str, float] = defaultdict(float)
        for group in groups:
            spent[group.device] += group.seconds
        self.device = device or max(spent, key=spent.__getitem__, default="cpu")
        self._took: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._steps: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for group in groups:
            for key in self._step_keys(group.trial):
                _add(self._steps[key], group.steps * group.count, group.count)
            if group.device == self.device:
                computed = group.count * estimate_seconds(group.trial, group.steps, self.device)
                for key in self._rate_keys(group.trial):
                    _add(self._took[key], group.seconds, computed)
        self._known: dict[Trial, tuple[float, Basis]] = {}

    @staticmethod
    def _rate_keys(trial: Trial) -> tuple[Any, Any]:
        return (trial.model, trial.task.name), trial.model.name

    @staticmethod
    def _step_keys(trial: Trial) -> tuple[Any, Any]:
        return (trial.model, trial.task, trial.steps), (trial.model.name, trial.task.name, trial.steps)

    def expected_steps(self, trial: Trial) -> float:
        """The mean of finished trials like it under the same budget, for some stop early; else the budget."""
        for key in self._step_keys(trial):
            if key in self._steps:
                steps, count = self._steps[key]
                return steps / count
        return trial.steps

    def estimate(self, trial: Trial) -> tuple[float, Basis]:
        kind = trial.stackable()
        if kind not in self._known:
            self._known[kind] = self._estimate(kind)
        return self._known[kind]

    def _estimate(self, trial: Trial) -> tuple[float, Basis]:
        seconds = estimate_seconds(trial, self.expected_steps(trial), self.device)
        for key, basis in zip(self._rate_keys(trial), (Basis.MEASURED, Basis.SCALED), strict=True):
            if key in self._took:
                took, computed = self._took[key]
                return seconds * took / computed, basis
        return seconds, Basis.ASSUMED


def _add(sums: list[float], *values: float) -> None:
    for place, value in enumerate(values):
        sums[place] += value


@dataclass(frozen=True, slots=True)
class _Group:
    """Finished trials alike in all that costs time."""

    trial: Trial
    """One of them."""
    device: str
    count: int
    steps: float
    """The mean."""
    seconds: float
    """The sum."""


def _finished_groups(trials: "Table") -> Iterable[_Group]:
    measures = [("trial_id", "count"), ("steps_trained", "mean"), ("seconds", "sum"), ("config", "min")]
    grouped = trials.group_by(["device", *_kind_columns()]).aggregate(measures)
    names = ["device", *(f"{name}_{measure}" for name, measure in measures)]
    for device, count, steps, seconds, config in zip(*(grouped[name].to_pylist() for name in names), strict=True):
        if None in (steps, seconds, config):
            continue
        try:
            yield _Group(Trial.from_dict(json.loads(config)), device or "cpu", count, steps, seconds)
        except OrchError:
            continue  # a trial of another version, with settings that this one does not know
