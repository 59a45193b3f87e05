"""sLSTM: Beck et al., "xLSTM" (2024, arXiv:2405.04517), the block with a scalar memory and recurrent weights.

    z, ĩ, f̃, õ = W x_t + R h_{t-1} + b;   i = e^ĩ;   f = σ(f̃)
    c_t = f ∘ c_{t-1} + i ∘ tanh(z);   n_t = f ∘ n_{t-1} + i;   h_t = σ(õ) ∘ c_t / n_t

R is block-diagonal, one block for each head. c and n are divided by e^m, with m = max(log f + m, ĩ), so that no
exponential overflows; h does not depend on m, and no gradient flows through it. The block adds norm(h), RMS for each
head, and its gated perceptron follows. The paper's optional convolution is left out. Shapes beyond the package's: a
heads of d components, A = K a blocks.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from orch.models.residual.config import ResidualConfig
from orch.models.residual.network import ResidualNetwork, head_norm
from orch.models.slstm.config import Config

FORGET_BIASES = (3.0, 6.0)
"""Range of the initial biases of the forget gates: memories begin long."""


class Network(ResidualNetwork):
    config: Config

    @classmethod
    def draw(cls, config: ResidualConfig, name: str, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        if name.endswith("mixer.bias"):
            forget = torch.empty(config.width).uniform_(*FORGET_BIASES, generator=generator)
            zeros = torch.zeros(config.width)
            return torch.cat([zeros, zeros, forget, zeros])
        return ResidualNetwork.draw(config, name, shape, generator)

    def enter(self, layer: int, x_KPH: Tensor) -> Tensor:
        return self.linear(layer, "mixer.input", x_KPH) + self.of(layer, "mixer.bias")[:, None]

    def scan(self, layer: int, entered_KTBG: Tensor, end_KB: Tensor) -> Tensor:
        (K, T, B, _), a = entered_KTBG.shape, self.config.heads
        by_head_KTB4ad = torch.unflatten(entered_KTBG, -1, (4, a, -1))
        gates_TABG = by_head_KTB4ad.permute(1, 0, 4, 2, 3, 5).reshape(T, K * a, B, -1)
        weight_K4add = torch.unflatten(self.of(layer, "mixer.recurrent"), 1, (4, a, -1))
        weight_AdG = weight_K4add.permute(0, 2, 4, 1, 3).reshape(K * a, gates_TABG.shape[-1] // 4, -1)
        c = n = h = gates_TABG.new_zeros(K * a, B, weight_AdG.shape[1])
        m, states = torch.full_like(h, -1e30), []
        for gates_ABG in gates_TABG:
            z, log_i, f, o = torch.baddbmm(gates_ABG, h, weight_AdG).chunk(4, dim=-1)
            log_f = F.logsigmoid(f) + m
            m = torch.maximum(log_f, log_i).detach()
            keep, write = (log_f - m).exp(), (log_i - m).exp()
            c, n = keep * c + write * z.tanh(), keep * n + write
            h = o.sigmoid() * c / n
            states.append(h)
        h_TKaBd = torch.unflatten(torch.stack(states), 1, (K, a))
        return h_TKaBd.permute(1, 0, 3, 2, 4).flatten(3)

    def leave(self, layer: int, y_KPI: Tensor, x_KPH: Tensor) -> Tensor:
        return head_norm(y_KPI, self.config.heads, self.of(layer, "mixer.output_norm"))
