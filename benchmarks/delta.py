"""Training steps of DeltaNet on one core: the chunked and the compiled form compared with plain loops over time.

Loss and gradients of a batch, without the optimiser, which is the same for all. CPU time, the least of several turns.

Usage: python benchmarks/delta.py
"""

import time
from collections.abc import Callable
from unittest import mock

import torch
from torch import Tensor
from torch.nn import functional as F

from orch.models import Vocabulary
from orch.models.delta_net import network as delta_net
from orch.models.delta_net.config import Config
from orch.models.kernel import COMPILED, PLAIN
from orch.models.network import build
from orch.models.recurrence.delta_rule import delta_rule, delta_rule_by_step
from orch.models.residual.network import at_end, rms_norm

BATCH, LONGEST, TURNS, PACK = 64, 12, 15, 9
VOCABULARY = Vocabulary(size=7, readable=7)


class EveryPosition(delta_net.Network):
    """DeltaNet as its equations stand: every block at every position."""

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


def step(kind: type[delta_net.Network], kernel: str, rule: Callable[..., Tensor], size: int, **settings: int) -> Tensor:
    """Return losses and gradients of one step, flattened, and time its repetitions in `seconds`."""
    network = build(Config(**settings), VOCABULARY, [torch.Generator().manual_seed(seed) for seed in range(size)])
    network.__class__, network.kernel = kind, kernel
    generator = torch.Generator().manual_seed(0)
    length_KB = torch.randint(3, LONGEST + 1, (size, BATCH), generator=generator)
    tokens_KBT = torch.randint(VOCABULARY.readable, (size, BATCH, LONGEST), generator=generator)
    tokens_KBT[torch.arange(LONGEST) >= length_KB[..., None]] = VOCABULARY.readable
    target_KB = torch.randint(VOCABULARY.size, (size, BATCH), generator=generator)
    taken = []
    with mock.patch.object(delta_net, "delta_rule", rule):
        for _ in range(TURNS):
            start = time.process_time()
            loss_K, gradients = network.compiled_gradients(tokens_KBT, target_KB)
            taken.append(time.process_time() - start)
    found = torch.cat([loss_K.detach(), *(gradients[name].flatten() for name in network.names)])  # type: ignore[list-item, union-attr]
    return torch.cat([torch.tensor([1000 * min(taken) / size]), found])


def main() -> None:
    torch.set_num_threads(1)
    ours = delta_net.Network
    print(
        f"{'ms a trial, one core':24}{'every position':>15}{'loop':>8}{'chunked':>9}{'compiled':>10}{'nine':>8}", end=""
    )
    print(f"{'every position / compiled':>27}{'loop / compiled':>17}{'one / nine':>12}")
    for width in (64, 256):
        for layers in (1, 2):
            settings = {"width": width, "layers": layers}
            plain, loop, chunked, compiled = (
                step(kind, kernel, rule, 1, **settings)
                for kind, kernel, rule in (
                    (EveryPosition, PLAIN, delta_rule_by_step),
                    (ours, PLAIN, delta_rule_by_step),
                    (ours, PLAIN, delta_rule),
                    (ours, COMPILED, delta_rule),
                )
            )
            for other in (loop, chunked, compiled):
                torch.testing.assert_close(other[1:], plain[1:], rtol=1e-3, atol=1e-5)
            nine = step(ours, COMPILED, delta_rule, PACK, **settings)[0]
            times = plain[0], loop[0], chunked[0], compiled[0], nine
            name = f"width {width}, {layers} layer{'s' * (layers > 1)}"
            print(f"{name:24}{times[0]:15.2f}{times[1]:8.2f}{times[2]:9.2f}{times[3]:10.2f}{times[4]:8.2f}", end="")
            print(f"{times[0] / times[3]:27.1f}{times[1] / times[3]:17.1f}{times[3] / nine:12.2f}")


if __name__ == "__main__":
    main()
