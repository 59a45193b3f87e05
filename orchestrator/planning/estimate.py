"""Estimates of a trial's time: the arithmetic of `step_time.py`, corrected by finished trials and by `orch doctor`.

No torch and no Ray.
"""

import enum
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orch import models
from orch.core.errors import OrchError
from orch.core.records import RatesRecord
from orch.models import ModelConfig
from orch.models.kernel import PLAIN
from orch.planning import step_time
from orch.planning.doctor_times import DoctorTimes, find_doctor_times
from orch.planning.probed import Probed
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.trial import Trial, parse_config

if TYPE_CHECKING:
    from pyarrow import Table

    from orch.store import Store


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


def step_seconds(trial: Trial, device: str = "cpu") -> float:
    """Estimate the seconds of one training step of a trial alone by arithmetic."""
    return step_time.step_seconds(trial, 1, device)


def estimate_seconds(
    trial: Trial, steps: float | None = None, device: str = "cpu", size: float = 1, kernel: str | None = None
) -> float:
    """Estimate a trial's share of the seconds of a pack of `size` by arithmetic: training, validations and tests.

    Its trials take `steps`, by default their budget.
    """
    return step_time.pack_seconds(trial, size, steps, device, kernel) / size


MEASURED_COLUMNS = (
    *("device", "kernel", "task_revision", "model_revision", "seconds", "steps_trained", "config"),
    *("wall_seconds", "device_seconds"),
)
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
    of the trials most like it: equal trials are expected to take as long again, and other sizes in proportion. Only
    finished trials count that the same kernel trained, each as part of a pack as large as its own.
    """

    def __init__(
        self,
        trials: "Table | None" = None,
        device: str | None = None,
        rates: Iterable[Mapping[str, Any]] = (),
        definitions: Definitions = BUILT_IN_DEFINITIONS,
    ):
        """Estimate for `device`: by default the one on which finished trials spent most of their time, else one that
        `orch doctor` timed, preferably a GPU. `rates` has what `orch doctor` stored for each device. Only those of the
        finished `trials` count whose model and task are in `definitions`."""
        groups = [] if trials is None else list(_finished_groups(trials, definitions))
        spent: dict[str, float] = defaultdict(float)
        for group in groups:
            spent[group.device] += group.seconds
        by_device = {each["device"]: each for each in rates}
        known = sorted(by_device, key=lambda name: name == "cpu")
        self.device = device or max(spent, key=spent.__getitem__, default=[*known, "cpu"][0])
        self._rates: Mapping[str, Any] | None = by_device.get(self.device)
        self._doctor_times: dict[type[ModelConfig], DoctorTimes | None] = {}
        self._took: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._steps: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for group in groups:
            for key in self._step_keys(group.trial):
                _add(self._steps[key], group.steps * group.count, group.count)
            if group.device == self.device and group.kernel == self._kernel(group.trial):
                computed = group.count * estimate_seconds(
                    group.trial, group.steps, self.device, group.pack, group.kernel
                )
                for key in self._rate_keys(group.trial):
                    _add(self._took[key], group.seconds, computed)
        self._known: dict[tuple[Trial, int], tuple[float, Basis]] = {}
        self._probed: dict[ModelConfig, tuple[Probed, float]] = {}

    @classmethod
    def of_store(cls, store: "Store", definitions: Definitions = BUILT_IN_DEFINITIONS) -> "Estimator":
        """Estimate by the trials that a store has finished, if it exists, and what `orch doctor` recorded in it."""
        columns = list(dict.fromkeys(["trial_id", *MEASURED_COLUMNS, *cost_columns(definitions)]))
        trials = store.read("trials", columns) if store.exists() else None
        return cls(trials, rates=store.list_json("rates", RatesRecord).values(), definitions=definitions)

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

    def _kernel(self, trial: Trial) -> str:
        return step_time.kernel_of(trial, self.device)

    def doctor_times(self, trial: Trial) -> DoctorTimes | None:
        """Return the times that `orch doctor` measured of the trial's model on the device; None if there are none."""
        model = type(trial.model)
        if model not in self._doctor_times:
            key = rate_key(trial.model)
            self._doctor_times[model] = (
                None if self._rates is None else find_doctor_times(self._rates, key, model, self.device)
            )
        return self._doctor_times[model]

    def estimate(self, trial: Trial, size: int = 1) -> tuple[float, Basis]:
        """Return the seconds that a trial takes, alone or as its share of a pack of `size`, and what they rest on."""
        kind = trial.stackable(), size
        if kind not in self._known:
            self._known[kind] = self._estimate(*kind)
        return self._known[kind]

    def _estimate(self, trial: Trial, size: int) -> tuple[float, Basis]:
        seconds = estimate_seconds(trial, self.expected_steps(trial), self.device, size)
        for key, basis in zip(self._rate_keys(trial), (Basis.MEASURED, Basis.SCALED), strict=True):
            if basis is Basis.SCALED and trial.model in self._probed and self.device == "cpu":
                return self._estimate_probed(trial, size), Basis.PROBED
            if key in self._took:
                took, computed = self._took[key]
                return seconds * took / computed, basis
        if (times := self.doctor_times(trial)) is not None:
            return seconds * times.ratio(size), Basis.TRIED
        return seconds, Basis.ASSUMED

    def _estimate_probed(self, trial: Trial, size: int) -> float:
        probed, ratio = self._probed[trial.model]
        seconds = ratio * estimate_seconds(trial, self.expected_steps(trial), self.device)
        return seconds / probed.speedup(size)


def _add(sums: list[float], *values: float) -> None:
    for place, value in enumerate(values):
        sums[place] += value


@dataclass(frozen=True, slots=True)
class _Group:
    """Finished trials with equal settings, except those that do not affect time."""

    trial: Trial
    """Any trial of the group."""
    device: str
    kernel: str
    pack: float
    """Mean size of their packs."""
    count: int
    steps: float
    """Mean training steps."""
    seconds: float
    """Seconds of all of them together."""


def _finished_groups(trials: "Table", definitions: Definitions) -> Iterable[_Group]:
    measures = [("trial_id", "count"), ("steps_trained", "mean"), ("seconds", "sum"), ("config", "min")]
    measures += [("wall_seconds", "sum"), ("device_seconds", "sum")]
    kinds = ["device", "kernel", "task_revision", "model_revision"]
    grouped = trials.group_by([*kinds, *cost_columns(definitions)]).aggregate(measures)
    names = [*kinds, *(f"{name}_{measure}" for name, measure in measures)]
    for row in zip(*(grouped[name].to_pylist() for name in names), strict=True):
        device, kernel, task_revision, model_revision, count, steps, seconds, config, wall, occupied = row
        if None in (steps, seconds, config):
            continue
        try:
            trial = Trial.from_dict(parse_config(config), definitions)
        except OrchError:
            continue  # a trial of another version, with settings that this one does not know
        # Settings may mean something else in another version of a user's code.
        parts = ((trial.task, task_revision), (trial.model, model_revision))
        if all(part.revision == revision for part, revision in parts if type(part) in definitions.user_types):
            # A pack occupies its device together. Rows without a kernel are from before there were several.
            pack = max(1.0, wall / occupied) if wall and occupied else 1.0
            yield _Group(trial, device or "cpu", kernel or PLAIN, pack, count, steps, seconds)
