"""A trial: all settings of one training run, and its identity. No torch."""

import dataclasses
import functools
import hashlib
import json
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar, cast

from orch.core.errors import DamagedFile, InvalidSettings, UnknownName, look_up_name
from orch.core.reading import Refused, parse_json
from orch.core.settings import (
    canonical,
    canonical_json,
    field_types,
    from_dict,
    number_json,
    setting,
    to_dict,
    type_problems,
)
from orch.core.shape import checked
from orch.models import ModelConfig, Vocabulary
from orch.models.kernel import PLAIN
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.recipe import ADAM, CONSTANT, FLOAT32, recipe_problems
from orch.sweeps.supervision import label_interval, supervision_problems
from orch.tasks import Task

T = TypeVar("T")
TRAINER_REVISION = 1
"""Raise it whenever training the same trial would give other numbers (Adam, loss, sampling order, evaluation)."""

_VARYING = {"data_seed": int, "init_seed": int, "learning_rate": float}
"""The settings in which the trials of a cell differ, in alphabetical order, with their types."""
MOST_TRIALS = 1_000_000
"""Most trials of a sweep. More would take the memory of the machine before the first of them is planned."""
_POSITIVE = ("batch_size", "steps", "min_inputs", "eval_every", "validation_samples", "test_length", "test_samples")


class _Remembered:
    """Slots for what a trial computes once, because plans of a million trials ask for it many times.

    They are no fields: copies and pickles of a trial do not have them.
    """

    __slots__ = ("_common", "_hash", "_id")
    _common: "_Common"
    _hash: int
    _id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial(_Remembered):
    """A model, a task, how to train and what to measure. Equal trials have equal ids in all sweeps."""

    task: Task
    model: ModelConfig
    learning_rate: float = setting(1e-4, "learning rate, the highest one of a schedule")
    batch_size: int = setting(64, "samples per training step")
    steps: int = setting(100_000, "training steps at most")
    min_inputs: int = setting(2, "fewest inputs in a training or validation sample")
    max_inputs: int = setting(10, "most inputs in a training or validation sample")
    train_examples: int = setting(0, "size of a fixed training set; 0 draws fresh samples at every step")
    balanced: bool = setting(False, "spread the fixed training set evenly over the targets")
    eval_every: int = setting(100, "training steps between validations")
    stop_loss: float = setting(1e-5, "stop early when the validation loss falls below this")
    validation_samples: int = setting(1024, "samples in the validation set")
    test_length: int = setting(500, "inputs in a test sample: the out-of-distribution length")
    test_samples: int = setting(1024, "samples per tested length")
    curve_lengths: tuple[int, ...] = setting((10, 20, 50, 100, 200, 500), "lengths of the length curve")
    init_seed: int = setting(0, "draws the initial parameters")
    data_seed: int = setting(0, "draws the training data")
    eval_seed: int = setting(0, "draws the validation and test sets, the same for every model")
    optimiser: str = setting(ADAM, "adam, adamw or sgd", past=ADAM)
    momentum: float = setting(0.0, "momentum of sgd", past=0.0)
    weight_decay: float = setting(
        0.0, "weight decay: added to the gradient by adam and sgd, applied to the weights by adamw", past=0.0
    )
    clip_norm: float = setting(0.0, "scale a gradient with a larger norm down to this; 0 clips nothing", past=0.0)
    schedule: str = setting(CONSTANT, "learning rate after the warm-up: constant, or cosine down to 0", past=CONSTANT)
    warmup_steps: int = setting(0, "steps in which the learning rate grows linearly to its full value", past=0)
    curriculum: float = setting(
        0.0, "share of the steps in which the longest samples grow from min_inputs to max_inputs; 0 for none", past=0.0
    )
    precision: str = setting(
        FLOAT32, "numbers to train with: float32, float64, or on a GPU bfloat16 (autocast)", past=FLOAT32
    )
    stop_accuracy: float = setting(
        0.0, "stop early when the validation accuracy (0 is chance, 1 is perfect) reaches this; 0 for never", past=0.0
    )
    supervision: str = setting(
        "final", "where samples have labels: final (at [EOI]), every (at every input too) or sparse:k", past="final"
    )

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.task.vocabulary, self.task.num_readable)

    @property
    def tested_lengths(self) -> tuple[int, ...]:
        return tuple(sorted({*self.curve_lengths, self.test_length}))

    @property
    def label_interval(self) -> int | None:
        """Inputs from one label to the next; None if only the end of a sample has one."""
        return label_interval(self.supervision)

    @property
    def label_shape(self) -> tuple[int, ...]:
        """Shape of a training sample's labels: () if only its end has one, (P,) if it has up to P."""
        return () if self.label_interval is None else (self.max_inputs // self.label_interval + 1,)

    def kernel_name(self, device: str) -> str:
        """Return the implementation of the model's arithmetic that trains this trial on `device`, if it is new."""
        if self.precision != FLOAT32:
            return PLAIN  # kernels of our own are for single precision
        return self.model.kernel_name(device, self.label_interval is not None)

    @property
    def batches_per_epoch(self) -> int:
        return math.ceil(self.train_examples / self.batch_size)

    @property
    def batch_sizes(self) -> set[int]:
        """Samples of a training step; the last of an epoch over a fixed set may have fewer, or none."""
        if not self.train_examples:
            return {self.batch_size}
        return {min(self.batch_size, self.train_examples), self.train_examples % self.batch_size}

    @property
    def id(self) -> str:
        try:
            return self._id
        except AttributeError:
            common = self.common
            common.texts = common.texts or _texts(self, self.model.revision, self.task.revision)
            found = self._id_of(common.texts)
            object.__setattr__(self, "_id", found)
            return found

    def id_at(self, model_revision: int, task_revision: int) -> str:
        """Return the id that this trial has where its model and its task have these revisions."""
        return self._id_of(_texts(self, model_revision, task_revision))

    def _id_of(self, texts: "tuple[str, ...]") -> str:
        numbers = [number_json(getattr(self, name), kind) for name, kind in _VARYING.items()]
        text = "".join(part for pair in zip(texts, (*numbers, ""), strict=True) for part in pair)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash(_all_settings(self)))
            return self._hash

    @property
    def common(self) -> "_Common":
        """The settings that all trials of its cell have in common."""
        try:
            return self._common
        except AttributeError:
            object.__setattr__(self, "_common", _common(self))
            return self._common

    @property
    def label(self) -> str:
        """A short description for people."""
        variant = f" ({self.model.full_summary})" if self.model.full_summary else ""
        return f"{self.model.name}{variant} on {self.task.name} {self.task.full_summary}".rstrip()

    @property
    def label_in_cell(self) -> str:
        """The label with what distinguishes a trial from the others of its cell."""
        return f"{self.label}, rate {self.learning_rate:g}, seed {self.init_seed}"

    def stackable(self) -> "Trial":
        """Return this trial without seeds and amounts of the recipe: trials that are then equal have the same shapes.

        Whether there is a momentum, a weight decay or a largest norm changes the program; how large it is does not.
        """
        return self.common.stackable

    def packable(self) -> "Trial":
        """Return this trial without all that may differ within a pack: trials that are then equal can be stacked.

        Most models are stacked across tasks and moduli, with padding where one needs more tokens than another.
        """
        same_shapes = self.stackable()
        return dataclasses.replace(same_shapes, task=Task()) if self.model.crosses_cells else same_shapes

    def to_dict(self) -> dict[str, Any]:
        task = {"name": self.task.name} | to_dict(self.task)
        model = {"name": self.model.name} | to_dict(self.model)
        return to_dict(self) | {"task": task, "model": model}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], definitions: Definitions = BUILT_IN_DEFINITIONS) -> "Trial":
        """Return a trial from the values that `to_dict` returned."""
        parts = dict(values)
        parts["task"] = _named(definitions.tasks, "task", parts.get("task"))
        parts["model"] = _named(definitions.models, "model", parts.get("model"))
        return from_dict(cls, parts)

    @property
    def definitions(self) -> Definitions:
        """The built-in models and tasks, and those of this trial."""
        built_in, model, task = BUILT_IN_DEFINITIONS, self.model, self.task
        return Definitions({**built_in.models, model.name: type(model)}, {**built_in.tasks, task.name: type(task)})

    def problems(self) -> list[str]:
        """Return everything that keeps this trial from running, each as a sentence that names the remedy."""
        if found := [*type_problems(self.task), *type_problems(self.model), *type_problems(self)]:
            return found  # the rest counts on numbers being numbers
        found = self.task.problems() + self.model.problems()
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                found.append(f"{name} {getattr(self, name)} is not enough: use 1 or more")
        found += supervision_problems(self.supervision)
        for name in ("train_examples", "init_seed", "data_seed", "eval_seed"):
            if getattr(self, name) < 0:
                found.append(f"{name} {getattr(self, name)} is negative: use 0 or more")
        if self.min_inputs > self.max_inputs:
            found.append(f"min_inputs {self.min_inputs} exceeds max_inputs {self.max_inputs}: lower it")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            found.append(f"learning_rate {self.learning_rate} trains nothing: use a positive number, such as 1e-3")
        if any(length < 1 for length in self.curve_lengths):
            found.append(f"curve_lengths {list(self.curve_lengths)} must all be 1 or more")
        if self.balanced and not self.train_examples:
            found.append("balanced applies to a fixed training set: set train_examples, or leave balanced off")
        elif self.balanced and self.min_inputs != self.max_inputs:
            found.append(
                f"a balanced training set has one length, but inputs range from {self.min_inputs} to {self.max_inputs}:"
                f" set min_inputs to {self.max_inputs}, or leave balanced off"
            )
        found += recipe_problems(self)
        longest = max(self.max_inputs, *self.tested_lengths)
        if self.model.max_tokens is not None and self.task.num_tokens(longest) > self.model.max_tokens:
            found.append(
                f"{longest} inputs of {self.task.name} are {self.task.num_tokens(longest)} tokens, past the"
                f" {self.model.max_tokens} that {self.model.name} can read: test shorter sequences, or raise positions"
            )
        return found

    def check(self) -> "Trial":
        """Return this trial, or raise an error that lists everything wrong with it."""
        positive = 0 < self.learning_rate < math.inf and self.init_seed >= 0 and self.data_seed >= 0
        try:
            is_sound = positive and self.common.is_sound
        except TypeError:  # a setting is of a type that cannot be looked up
            is_sound = False
        if not is_sound:
            if problems := self.problems():
                raise InvalidSettings(problems)
            self.common.is_sound = True
        return self


def check_number(num_trials: int, subject: str) -> None:
    """Raise an error that says how many trials there would be, before they are made, if they are too many."""
    if num_trials > MOST_TRIALS:
        most = f"at most {MOST_TRIALS:,} can be planned"
        raise InvalidSettings([f"{subject} {num_trials:,} trials, and {most}: use fewer seeds, rates, models or tasks"])


class TrialConfig(TypedDict):
    """The settings of a trial as the column `config` has them: those of `Trial`, and its task and model by name."""

    task: "NamedPart"
    model: "NamedPart"


class NamedPart(TypedDict):
    """The name of a task or a model, beside its settings."""

    name: str


def parse_config(text: str | None) -> dict[str, Any]:
    """Return the settings that a row of `trials` has as JSON, or raise an error if they are no settings of a trial."""
    try:
        found = checked(parse_json(text or ""), TrialConfig)
    except Refused as reason:
        remedy = 'find it with orch query "SELECT trial_id, config FROM trials", and withdraw it with orch discard'
        raise DamagedFile(f"a finished trial has no readable settings ({reason}): {remedy}") from None
    return dict(found)


@dataclass(slots=True)
class _Common:
    """What trials have in common that differ only in learning rate and seeds."""

    stackable: Trial
    texts: tuple[str, ...] = ()
    """The canonical JSON around the values of `_VARYING`; empty until an id is asked for."""
    is_sound: bool = False
    """Whether one of them was found to have no problems: the others can only have a wrong learning rate or seed."""


_all_settings = operator.attrgetter(*(field.name for field in dataclasses.fields(Trial)))
_shared_settings = operator.attrgetter(*(each.name for each in dataclasses.fields(Trial) if each.name not in _VARYING))
_known: dict[Any, _Common] = {}
_MOST_KNOWN = 1 << 14


def _common(trial: Trial) -> _Common:
    """Return what a trial has in common with others, the same object for all that share their model and task."""
    settings = _shared_settings(trial)
    found = _known.get(settings)
    # Equal tasks may have different names, so that only those of the same objects can stand for each other.
    if found is None or found.stackable.model is not trial.model or found.stackable.task is not trial.task:
        stackable = dataclasses.replace(
            trial,
            learning_rate=1.0,
            init_seed=0,
            data_seed=0,
            momentum=0.5 * (trial.momentum > 0),
            weight_decay=float(trial.weight_decay > 0),
            clip_norm=float(trial.clip_norm > 0),
            warmup_steps=0,
        )
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        found = _known[settings] = _Common(stackable)
    return found


def _texts(trial: Trial, model_revision: int, task_revision: int) -> tuple[str, ...]:
    """Return the canonical JSON of a trial, cut where the values of `_VARYING` stand."""
    revision = f'{{"model":{model_revision},"task":{task_revision},"trainer":{TRAINER_REVISION}}}'
    parts = {"task": _identity_of(trial.task), "model": _identity_of(trial.model), "revision": revision}
    cut = "\0"  # JSON has none: it would be escaped
    return tuple(canonical_json(trial, parts | dict.fromkeys(_VARYING, cut)).split(cut))


@functools.lru_cache(maxsize=1 << 12)
def _identity_of(part: Task | ModelConfig) -> str:
    """Return the canonical JSON of a task or model. It is cached, because thousands of trials share few of them."""
    return json.dumps({"name": part.name} | canonical(part), sort_keys=True, separators=(",", ":"))


def model_from_dict(values: Any, definitions: Definitions = BUILT_IN_DEFINITIONS) -> ModelConfig:
    """Return the model of a trial, whose task may be unknown."""
    return _named(definitions.models, "model", values)


def task_from_dict(values: Any, definitions: Definitions = BUILT_IN_DEFINITIONS) -> Task:
    """Return the task of a trial, whose model may be unknown."""
    return _named(definitions.tasks, "task", values)


def _named(registry: Mapping[str, type[T]], kind: str, values: Any) -> T:
    if isinstance(values, (Task, ModelConfig)):
        return cast(T, values)
    settings = dict(values or {})
    name = settings.pop("name", "")
    return from_dict(look_up_name(kind, name, registry), settings, kind=f"setting of {kind} {name}")


def with_matching_lengths(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a trial in which no length beyond the only one of test and curve that is given is tested."""
    found = dict(settings)
    if "test_length" in found and "curve_lengths" not in found:
        usual: tuple[int, ...] = Trial.__dataclass_fields__["curve_lengths"].default  # type: ignore[assignment]
        found["curve_lengths"] = tuple(length for length in usual if length <= found["test_length"])
    elif found.get("curve_lengths") and "test_length" not in found:
        found["test_length"] = max(found["curve_lengths"])
    return found


def make_trial(task: str, model: str, definitions: Definitions = BUILT_IN_DEFINITIONS, **settings: Any) -> Trial:
    """Return a checked trial from keyword settings, each of which belongs to the task, the model or the trial."""
    problems: list[str] = []
    owners: dict[str, dict[str, Any]] = {"task": {"name": task}, "model": {"name": model}, "trial": {}}
    known: dict[str, set[str]] = {"trial": set(field_types(Trial)) - {"task", "model"}}
    named: tuple[tuple[str, Mapping[str, type[Any]], str], ...] = (
        ("task", definitions.tasks, task),
        ("model", definitions.models, model),
    )
    for kind, registry, name in named:
        if name in registry:
            known[kind] = set(field_types(registry[name]))
        else:
            problems.append(str(UnknownName(kind, name, definitions.task_names if kind == "task" else registry)))
    if not problems:
        for name, value in settings.items():
            owner = next((kind for kind in ("task", "model", "trial") if name in known[kind]), None)
            if owner is None:
                problems.append(str(UnknownName(f"setting of {model} on {task}", name, set().union(*known.values()))))
            else:
                owners[owner][name] = value
    if problems:
        raise InvalidSettings(problems)
    values = {"task": owners["task"], "model": owners["model"], **owners["trial"]}
    return Trial.from_dict(values, definitions).check()
