"""Training steps of the delta rule's models on one core: compiled and chunked forms compared with plain time loops.

Loss and gradients of a batch, without the optimiser, which is the same for all. CPU time of the process, the least of
several turns; the forms take turns, so that other work on the machine disturbs all of them alike. The loop leaves out
what no answer depends on, as all forms but "every position" do. Times of packs of nine are per trial.

Usage: python benchmarks/delta.py [--turns 15] [--model delta_net gated_delta_net delta_product]
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.nn import functional as F

from orch import models
from orch.models import Vocabulary
from orch.models.delta_net import network as delta_net
from orch.models.kernel import COMPILED, COMPILED_2, PLAIN
from orch.models.network import build
from orch.models.recurrence.delta_rule import delta_rule, delta_rule_by_step
from orch.models.residual.network import at_end, rms_norm

BATCH, LONGEST, TURNS, PACK = 64, 12, 15, 9
VOCABULARY = Vocabulary(size=7, readable=7)


class EveryPosition(delta_net.Network):
    """A network as its equations stand: every block at every position."""

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        readable_KTB = tokens_KBT.mT.clamp(max=self.vocabulary.readable - 1)
        first_row_K = torch.arange(len(tokens_KBT)) * self.vocabulary.size
        x_KTBH = F.embedding(readable_KTB + first_row_K[:, None, None], self["embedding"].flatten(0, 1))
        for layer in range(self.config.layers):
            x_KPH = x_KTBH.flatten(1, 2)
            entered_KPG = self.enter(layer, self.normed(layer, x_KPH))
            y_KTBI = self.scan(layer, entered_KPG.view(*x_KTBH.shape[:3], -1), end_KB)
            x_KTBH = self._leave(layer, y_KTBI.flatten(1, 2), x_KPH).view_as(x_KTBH)
        return self.head(at_end(rms_norm(x_KTBH, self["norm"]), end_KB))


Step = Callable[[], tuple[Tensor, dict[str, Any]]]


@dataclass(frozen=True)
class Form:
    """A way to compute a training step."""

    kernel: str
    rule: Callable[..., Tensor] = delta_rule
    every_position: bool = False
    size: int = 1


FORMS = {
    "every position": Form(PLAIN, delta_rule_by_step, every_position=True),
    "loop": Form(PLAIN, delta_rule_by_step),
    "chunked": Form(PLAIN),
    "scan compiled": Form(COMPILED),
    "compiled": Form(COMPILED_2),
    "loop, by nine": Form(PLAIN, delta_rule_by_step, size=PACK),
    "scan, by nine": Form(COMPILED, size=PACK),
    "by nine": Form(COMPILED_2, size=PACK),
}
RATIOS = (
    ("every position", "compiled"),
    ("loop", "compiled"),
    ("loop, by nine", "by nine"),
    ("scan compiled", "by nine"),
    ("compiled", "by nine"),
)


def prepare(form: Form, model: str, width: int, layers: int) -> Step:
    config = models.REGISTRY[model](width=width, layers=layers)
    network = build(config, VOCABULARY, [torch.Generator().manual_seed(seed) for seed in range(form.size)])
    network.kernel = form.kernel
    if form.every_position:
        network.__class__ = type("EveryPosition", (EveryPosition, type(network)), {})
    generator = torch.Generator().manual_seed(0)
    length_KB = torch.randint(3, LONGEST + 1, (form.size, BATCH), generator=generator)
    tokens_KBT = torch.randint(VOCABULARY.readable, (form.size, BATCH, LONGEST), generator=generator)
    tokens_KBT[torch.arange(LONGEST) >= length_KB[..., None]] = VOCABULARY.readable
    target_KB = torch.randint(VOCABULARY.size, (form.size, BATCH), generator=generator)

    def step() -> tuple[Tensor, dict[str, Any]]:
        with mock.patch.object(delta_net, "delta_rule", form.rule):
            return network.compiled_gradients(tokens_KBT, target_KB)

    return step


def check(steps: dict[str, Step]) -> None:
    """Raise an error unless forms of equal size have the same losses and gradients."""
    for plain, others in (("every position", list(FORMS)[1:5]), ("loop, by nine", list(FORMS)[6:])):
        loss_K, gradients = steps[plain]()
        for other in others:
            own_loss_K, own_gradients = steps[other]()
            torch.testing.assert_close(own_loss_K, loss_K, rtol=1e-3, atol=1e-5)
            for name, gradient in gradients.items():
                torch.testing.assert_close(own_gradients[name], gradient, rtol=1e-3, atol=1e-5)


def measure(model: str, width: int, layers: int, turns: int) -> dict[str, float]:
    """Return the milliseconds of a trial's step in each form."""
    steps = {name: prepare(form, model, width, layers) for name, form in FORMS.items()}
    check(steps)
    taken = dict.fromkeys(FORMS, math.inf)
    for _ in range(turns):
        for name, step in steps.items():
            start = time.process_time()
            step()
            taken[name] = min(taken[name], 1000 * (time.process_time() - start) / FORMS[name].size)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--model", nargs="+", default=["delta_net", "gated_delta_net", "delta_product"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    for model in options.model:
        for width in (64, 256):
            for layers in (1, 2):
                taken = measure(model, width, layers, options.turns)
                print(f"{model}, width {width}, {layers} layer{'s' * (layers > 1)}")
                print("   ms a trial: ", "; ".join(f"{name} {value:.2f}" for name, value in taken.items()))
                ratios = (f"{slow} / {fast} {taken[slow] / taken[fast]:.2f}" for slow, fast in RATIOS)
                print("   ratios:     ", "; ".join(ratios), flush=True)


if __name__ == "__main__":
    main()
