"""The three scales: named sizes of trials. A trial has no field for its scale, so scales may share trials."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orch.core.counted import counted
from orch.core.errors import look_up_name
from orch.models import ModelConfig
from orch.sweeps.cell import Cell
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.protocols import PROTOCOLS, SEPARATOR, Protocol, find_protocol, scale_under
from orch.sweeps.selection import NOT_KNOWN, Waiting
from orch.sweeps.trial import Trial, check_number
from orch.tasks import Task


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """Size and length of trials. Sweeps make their trials through a scale and decide what else depends on it."""

    name: str
    about: str
    width: int
    steps: int
    eval_every: int
    learning_rates: tuple[float, ...]
    seeds: tuple[int, ...]
    moduli: tuple[int, ...]
    samples: int
    """Number of samples in the validation set, and for each tested length."""
    thrifty: bool = False
    """True if slow models, and tables that compare many variants, are trained with one seed."""
    deepest: int = 4
    """Largest number of layers."""
    sparse: bool = False
    """True if one trial of each kind is enough."""
    spared_seeds: tuple[int, ...] = ()
    """Seeds that were left out to save time."""
    protocol: Protocol | None = None
    """Decides lengths, supervision and stopping of all trials; None leaves them to the sweep."""
    definitions: Definitions = field(default=BUILT_IN_DEFINITIONS, repr=False, compare=False)
    """The models and tasks that can be named."""

    @property
    def size(self) -> str:
        """The name without that of the protocol."""
        return self.name.partition(SEPARATOR)[0]

    def under(self, protocol: Protocol | None) -> "Scale":
        """Return this scale with trials as a protocol asks for them; None leaves them to the sweep."""
        about = self.about if protocol is None else f"{self.about}; protocol {protocol.name}: {protocol.about}"
        name = scale_under(self.size, None if protocol is None else protocol.name)
        return replace(self, name=name, about=about, protocol=protocol)

    def task(self, name: str, modulus: int) -> Task:
        """Make the task of this name."""
        return look_up_name("task", name, self.definitions.tasks)(modulus=modulus)

    def model(self, name: str, **settings: Any) -> ModelConfig:
        """Make the model of this name, at this scale's width unless `settings` has another."""
        return look_up_name("model", name, self.definitions.models)(**{"width": self.width} | settings)

    def trial(
        self, task: Task, model: ModelConfig, *, learning_rate: float | Waiting, seed: int, **settings: Any
    ) -> Trial | Waiting:
        """Make a checked trial, or a `Waiting` if its learning rate is still to be chosen."""
        defaults = {
            "steps": self.steps,
            "eval_every": self.eval_every,
            "validation_samples": self.samples,
            "test_samples": self.samples,
            "init_seed": seed,
            "data_seed": seed,
        }
        decided: Mapping[str, Any] = {} if self.protocol is None else self.protocol.settings
        if decided:
            model = model.able_to_read(task.num_tokens(max(decided["max_inputs"], decided["test_length"])))
        rate = NOT_KNOWN if isinstance(learning_rate, Waiting) else learning_rate
        trial = Trial(task=task, model=model, learning_rate=rate, **{**defaults, **settings, **decided})
        if isinstance(learning_rate, Waiting):
            return replace(learning_rate, trial=trial)
        return trial.check()

    def cell(
        self,
        task: Task,
        model: ModelConfig,
        learning_rates: Sequence[float | Waiting] | None = None,
        variant: str = "",
        reading: str = "",
        **settings: Any,
    ) -> Cell:
        """Make the trials of one number of a table: every learning rate with every seed."""
        if learning_rates is None:
            learning_rates = model.own_learning_rates.get(self.size, self.learning_rates)
        chosen = self.sparing() if model.slow else self
        check_number(len(learning_rates) * len(chosen.seeds), "a cell has")
        trials = [
            self.trial(task, model, learning_rate=rate, seed=seed, **settings)
            for rate in learning_rates
            for seed in chosen.seeds
        ]
        return Cell(trials, variant, reading, chosen._left_out(task, model))

    def sparing(self) -> "Scale":
        """Return this scale, with one seed only if it is thrifty."""
        if not self.thrifty:
            return self
        return replace(self, seeds=self.seeds[:1], spared_seeds=(*self.seeds[1:], *self.spared_seeds))

    def _left_out(self, task: Task, model: ModelConfig) -> tuple[str, ...]:
        """Return what this scale trains the model on the task with, where it could be more."""
        found = []
        if self.spared_seeds:
            found.append(f"{len(self.seeds)} of {len(self.seeds) + len(self.spared_seeds)} seeds")
        if self.deepest < PAPER.deepest and getattr(model, "layers", 0) == self.deepest:
            found.append(f"at most {counted(self.deepest, 'layer')}")
        if max(self.moduli) < max(PAPER.moduli) and task.modulus == max(self.moduli):
            found.append(f"moduli up to {task.modulus}")
        if self.sparse:
            found.append("one variant of each kind")
        return tuple(found)

    def left_out(self, cells: Iterable[tuple[str, tuple[str, ...]]]) -> list[str]:
        """Return a sentence for everything that this scale left out of cells, given their models and `Cell.left_out`.

        >>> LAPTOP.left_out([("lstm", ("moduli up to 5",)), ("mamba", ("1 of 2 seeds", "moduli up to 5"))])
        ['laptop scale trains every model with moduli up to 5', 'laptop scale trains mamba with 1 of 2 seeds']
        """
        models: Counter[str] = Counter()
        concerned: dict[str, Counter[str]] = {}
        for model, remarks in cells:
            models[model] += 1
            for remark in remarks:
                concerned.setdefault(remark, Counter())[model] += 1
        remarks_of: dict[tuple[str, ...], list[str]] = {}
        for remark, counts in concerned.items():
            in_all = not remark.endswith("seeds") or all(counts[name] == models[name] for name in counts)
            remarks_of.setdefault(tuple(sorted(counts)), []).append(f"{remark}{'' if in_all else ' in some cells'}")
        found = []
        for names, texts in remarks_of.items():
            named = " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
            subject = "every model" if len(names) == len(models) > 1 else named
            found.append(f"{self.name} scale trains {subject} with {' and '.join(texts)}")
        return found

    def few(self, *values: Any) -> tuple[Any, ...]:
        """Return all values, or only the first if the scale is sparse."""
        return values[:1] if self.sparse else values

    def in_proportion(self, size: int) -> int:
        """Shrink a published size as this scale's width is shrunk; even, so that pairs and heads fit."""
        return max(8, 2 * round(size * self.width / PAPER.width / 2))


PAPER = Scale(
    name="paper",
    about="as published, for a cluster",
    width=256,
    steps=100_000,
    eval_every=100,
    learning_rates=(1e-3, 1e-4, 1e-5),
    seeds=(0, 1, 2),
    moduli=(2, 3, 5, 10, 25, 50),
    samples=1024,
)
LAPTOP = Scale(
    name="laptop",
    about="the same questions made small, for a few CPU cores",
    width=64,
    steps=4000,
    eval_every=100,
    learning_rates=(1e-3, 3e-4),
    seeds=(0, 1),
    moduli=(2, 3, 5),
    samples=1024,
    thrifty=True,
    deepest=1,
)
SMOKE = Scale(
    name="smoke",
    about="every kind of trial for a few steps: proof that the machinery runs",
    width=16,
    steps=20,
    eval_every=10,
    learning_rates=(1e-3,),
    seeds=(0,),
    moduli=(2, 3),
    samples=64,
    sparse=True,
)

SCALES: dict[str, Scale] = {scale.name: scale for scale in (PAPER, LAPTOP, SMOKE)}


def find_scale(name: str) -> Scale:
    """Return the scale of a name such as laptop, or one under a protocol, such as laptop:chomsky."""
    size, _, protocol = name.partition(SEPARATOR)
    scale = look_up_name("scale", size, SCALES)
    return scale.under(find_protocol(protocol)) if protocol else scale


def is_scale(name: str) -> bool:
    """Return whether there is a scale of this name. A store may have been written by a version that has others."""
    size, _, protocol = name.partition(SEPARATOR)
    return size in SCALES and protocol in ("", *PROTOCOLS)
