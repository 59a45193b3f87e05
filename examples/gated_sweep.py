"""A user-defined sweep, model and task: orch sweep examples/gated_sweep.py --where modulus=2,seed=0

With negative gates a diagonal recurrence learns parity at every length. Unlike a rotation it can also forget its
state, as sums that are reset now and then require.

You may edit `cells`, comments and formatting: finished trials still count. After an edit of code that the model or the
task uses, here or in the network's file, its trials run again, unless you say `orch keep`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from orch.core.settings import setting
from orch.models import ModelConfig, Vocabulary
from orch.sweeps.cell import Cell
from orch.sweeps.scales import Scale
from orch.sweeps.selection import Results
from orch.tasks import Task

TITLE = "A diagonal recurrence with positive or signed gates, on sums that can be reset"
GATES = ("positive", "signed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Gated(ModelConfig):
    name = "gated"
    about = "h' = f(x) h + (1 - |f(x)|) v(x), elementwise"

    gate: str = setting("signed", "range of the gate f: positive (0 to 1) or signed (-1 to 1)")

    @property
    def summary(self):
        return f"{self.gate} gates"

    def shapes(self, vocabulary: Vocabulary):
        H, V = self.width, vocabulary.size
        linear = {f"{name}.weight": (H, H) for name in ("gate", "value")}
        biases = {f"{name}.bias": (H,) for name in ("gate", "value")}
        return {"embedding.weight": (V, H), "head.weight": (V, H), "head.bias": (V,)} | linear | biases

    def network(self):
        from .gated_network import Network  # imported here, because planning must not import torch

        return Network

    def problems(self):
        found = ModelConfig.problems(self)
        if self.gate not in GATES:
            found.append(f"gate {self.gate!r} is unknown: use one of {', '.join(GATES)}")
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class ResettableAddition(Task):
    """The sum modulo m of the inputs since the last reset. Symbols 0 to m-1 are added, symbol m resets."""

    name = "resettable_addition"

    modulus: int = setting(2, "number of values, m")

    @property
    def slots(self):
        return (range(self.modulus + 1),)

    @property
    def initial(self):
        return 0

    def step(self, state, symbol):
        return 0 if symbol == self.modulus else (state + symbol) % self.modulus

    def target(self, state):
        return state


def cells(scale: Scale, results: Results) -> Iterator[Cell]:
    models = [*(Gated(width=scale.width, gate=gate) for gate in GATES), scale.model("lstm"), scale.model("rotation")]
    for modulus, model in product(scale.moduli, models):
        for task in (ResettableAddition(modulus=modulus), scale.task("modular_addition", modulus)):
            yield scale.cell(task, model)
