"""Estimates of a trial's time: arithmetic at assumed rates, corrected by finished trials and by `orch doctor`.

No torch and no Ray.
"""

import enum
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orch import models
from orch.core.errors import OrchError
from orch.models import ModelConfig
from orch.planning.probed import Probed
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.trial import Trial

if TYPE_CHECKING:
    from pyarrow import Table


class Basis(enum.StrEnum):
    """The kinds of evidence that an estimate rests on, the best first."""

    MEASURED = "measured"
    """Finished trials of the same model, size and task."""
    PROBED = "probed"
    """Steps, a validation and tests of a user's own model, timed in a process of its own."""
    SCALED = "scaled"
    """Finished trials of the same model in other sizes or on other tasks, in proportion to the arithmetic."""
    TRIED = "tried"
    """The arithmetic, corrected by the training steps that `orch doctor` timed on the device."""
    ASSUMED = "assumed"
    """The arithmetic alone, at assumed rates."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Rough speed of a device, used where no trial has finished."""

    flops_per_second: float
    seconds_per_step: float
    seconds_per_token: float
    """Time for each position of a forward pass, which goes through them one after the other."""
    seconds_per_parameter: float
    """Time of the optimiser for each parameter."""


ASSUMED_IN = "November 2026"
ASSUMED = {
    # Fits the training steps of Mamba and the transformer at width 64 and 256 within a factor of 2, on one core of a
    # cloud server.
    "cpu": Rates(40e9, 1e-3, 45e-6, 2.7e-9),
    # Fits those of compiled kernels in docs/packs.md: within 30% at width 256, within a factor of 2 at width 64.
    "compiled": Rates(200e9, 0.1e-3, 4e-6, 0.8e-9),
    # Not measured: a data-centre GPU, where small models mostly wait for one kernel after another to start.
    "gpu": Rates(5e12, 2e-3, 100e-6, 3e-11),
}


def step_seconds(trial: Trial, device: str = "cpu") -> float:
    """Estimate the seconds of one training step by arithmetic."""
    return _seconds(_costs(trial), _rates(trial, device))[0]


def estimate_seconds(trial: Trial, steps: float | None = None, device: str = "cpu") -> float:
    """Estimate the seconds of a trial of `steps` (else its budget) by arithmetic: training, validations and tests."""
    steps = trial.steps if steps is None else steps
    per_step, per_validation, tests = _seconds(_costs(trial), _rates(trial, device))
    return steps * per_step + math.ceil(steps / trial.eval_every) * per_validation + tests


def _rates(trial: Trial, device: str) -> Rates:
    return ASSUMED[("compiled" if trial.model.compiled else "cpu") if device == "cpu" else "gpu"]


Pass = tuple[int, int]
"""Operations of one forward pass, and positions that it goes through one after the other."""


def _seconds(costs: tuple[Pass, Pass, Pass, int], rates: Rates) -> tuple[float, float, float]:
    def forward(cost: Pass) -> float:
        return cost[0] / rates.flops_per_second + cost[1] * rates.seconds_per_token

    batch, validation, tests, num_trained = costs
    update = rates.seconds_per_step + num_trained * rates.seconds_per_parameter
    return update + 3 * forward(batch), forward(validation), forward(tests)


def _costs(trial: Trial) -> tuple[Pass, Pass, Pass, int]:
    """Return the costs of a training batch, a validation and all tests, and the number of trained parameters."""
    model, vocabulary = trial.model, trial.vocabulary

    def forward(samples: int, inputs: int) -> Pass:
        tokens = trial.task.num_tokens(inputs)
        return model.forward_flops(vocabulary, samples, tokens), model.sequential_positions(tokens)

    batch = min(trial.batch_size, trial.train_examples or trial.batch_size)
    tests = [forward(trial.test_samples, length) for length in trial.tested_lengths]
    shapes = model.shapes(vocabulary).items()
    return (
        forward(batch, trial.max_inputs),
        forward(trial.validation_samples, trial.max_inputs),
        (sum(flops for flops, _ in tests), sum(tokens for _, tokens in tests)),
        sum(math.prod(shape) for name, shape in shapes if model.is_trained(name)),
    )


MEASURED_COLUMNS = ("device", "task_revision", "model_revision", "seconds", "steps_trained", "config")
_IN_A_PACK = {"learning_rate", "init_seed", "data_seed", "eval_seed"}


def cost_columns(definitions: Definitions = BUILT_IN_DEFINITIONS) -> list[str]:
    """Return the settings in which trials must agree to cost the same."""
    from orch.store.columns import setting_columns

    columns = setting_columns(definitions.user_types)
    # Lists are left out, because Arrow cannot compare them.
    return [column.name for column in columns if not column.type.num_fields and column.name not in _IN_A_PACK]


def rate_key(model: ModelConfig) -> str:
    """Return the name under which `orch doctor` records a model's rate: a user's model has its revision in it."""
    return model.name if models.REGISTRY.get(model.name) is type(model) else f"{model.name}-{model.revision}"


class Estimator:
    """Estimates the time of trials: the arithmetic, corrected by the time that finished trials took.

    A trial's estimate is `estimate_seconds` at the steps it is expected to train, times measured over computed time
    of the trials most like it: equal trials are expected to take as long again, and other sizes in proportion.
    """

    def __init__(
        self,
        trials: "Table | None" = None,
        device: str | None = None,
        tried: Iterable[Mapping[str, Any]] = (),
        definitions: Definitions = BUILT_IN_DEFINITIONS,
    ):
        """Estimate for `device`: by default the one on which finished trials spent most of their time, else one that
        `orch doctor` tried, preferably a GPU. `tried` has the rates that `orch doctor` stored. Only those of the
        finished `trials` count whose model and task are in `definitions`."""
        groups = [] if trials is None else list(_finished_groups(trials, definitions))
        spent: dict[str, float] = defaultdict(float)
        for group in groups:
            spent[group.device] += group.seconds
        by_device = {each["device"]: each["ratios"] for each in tried}
        known = sorted(by_device, key=lambda name: name == "cpu")
        self.device = device or max(spent, key=spent.__getitem__, default=[*known, "cpu"][0])
        self._tried: Mapping[str, float] = by_device.get(self.device, {})
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
        self._probed: dict[ModelConfig, tuple[Probed, float]] = {}

    def learn(self, probed: Mapping[Trial, Probed]) -> None:
        """Use what trials of the user's own models took when they were tried."""
        for trial, each in probed.items():
            self._probed.setdefault(trial.model, (each, each.seconds(trial) / estimate_seconds(trial)))
        self._known.clear()

    def probed(self, trial: Trial) -> Probed | None:
        """Return what a trial of the same model took when it was tried; None if none was."""
        return self._probed[trial.model][0] if trial.model in self._probed else None

    @staticmethod
    def _rate_keys(trial: Trial) -> tuple[Any, Any]:
        return (trial.model, trial.task.name), trial.model.name

    @staticmethod
    def _step_keys(trial: Trial) -> tuple[Any, Any]:
        return (trial.model, trial.task, trial.steps), (trial.model.name, trial.task.name, trial.steps)

    def expected_steps(self, trial: Trial) -> float:
        """Return the mean steps of finished trials like it with the same budget; without any, the budget."""
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
            if basis is Basis.SCALED and trial.model in self._probed and self.device == "cpu":
                return seconds * self._probed[trial.model][1], Basis.PROBED
            if key in self._took:
                took, computed = self._took[key]
                return seconds * took / computed, basis
        if (key := rate_key(trial.model)) in self._tried:
            return seconds * self._tried[key], Basis.TRIED
        return seconds, Basis.ASSUMED


def _add(sums: list[float], *values: float) -> None:
    for place, value in enumerate(values):
        sums[place] += value


@dataclass(frozen=True, slots=True)
class _Group:
    """Finished trials with equal settings, except those that do not affect time."""

    trial: Trial
    """Any trial of the group."""
    device: str
    count: int
    steps: float
    """Mean training steps."""
    seconds: float
    """Seconds of all of them together."""


def _finished_groups(trials: "Table", definitions: Definitions) -> Iterable[_Group]:
    measures = [("trial_id", "count"), ("steps_trained", "mean"), ("seconds", "sum"), ("config", "min")]
    kinds = ["device", "task_revision", "model_revision"]
    grouped = trials.group_by([*kinds, *cost_columns(definitions)]).aggregate(measures)
    names = [*kinds, *(f"{name}_{measure}" for name, measure in measures)]
    columns = (grouped[name].to_pylist() for name in names)
    for device, task_revision, model_revision, count, steps, seconds, config in zip(*columns, strict=True):
        if None in (steps, seconds, config):
            continue
        try:
            trial = Trial.from_dict(json.loads(config), definitions)
        except OrchError:
            continue  # a trial of another version, with settings that this one does not know
        # Settings may mean something else in another version of a user's code.
        parts = ((trial.task, task_revision), (trial.model, model_revision))
        if all(part.revision == revision for part, revision in parts if type(part) in definitions.user_types):
            yield _Group(trial, device or "cpu", count, steps, seconds)
