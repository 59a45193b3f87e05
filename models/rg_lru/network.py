"""Real-Gated Linear Recurrent Unit: De et al. (2024, arXiv:2402.19427), the recurrent block of Griffin.

    u = conv(W x) + b;   r_t = σ(W_r u_t + b_r);   i_t = σ(W_i u_t + b_i);   a_t = σ(Λ)^{8 r_t}
    h_t = a_t ∘ h_{t-1} + √(1 - a_t²) ∘ (i_t ∘ u_t);    W_o (h ∘ gelu(W_g x))

Transitions are positive: a is in (0, 1). At first σ(Λ)^8 is uniform in [0.9, 0.999]. The recurrence is as wide as the
model, and W_r and W_i are full matrices, as the paper's equations have them.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from orch.models.mamba.scan import convolve
from orch.models.recurrence.diagonal import diagonal_scan
from orch.models.residual.config import ResidualConfig
from orch.models.residual.network import ResidualNetwork, by_entry
from orch.models.rg_lru.config import Config

SHARPNESS = 8
INITIAL_DECAYS = (0.9, 0.999)
SMALLEST_SHARE = 1e-6
"""Least value of 1 - a², whose root has a gradient that grows without bound."""


class Network(ResidualNetwork):
    config: Config

    @classmethod
    def draw(cls, config: ResidualConfig, name: str, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        if name.endswith("mixer.decay"):
            return torch.empty(*shape).uniform_(*INITIAL_DECAYS, generator=generator).pow_(1 / SHARPNESS).logit_()
        if name.endswith("bias"):
            return torch.zeros(*shape)
        return ResidualNetwork.draw(config, name, shape, generator)

    def enter(self, layer: int, x_KPH: Tensor) -> Tensor:
        return self.linear(layer, "mixer.input", x_KPH)

    def scan(self, layer: int, entered_KTBG: Tensor, end_KB: Tensor) -> Tensor:
        weight_KI1J, bias_KI = (self.of(layer, f"mixer.convolution{name}") for name in ("", "_bias"))
        u_KTBI = convolve(entered_KTBG, weight_KI1J, bias_KI, activated=False)
        decay_KTBI, input_KTBI = (self._gate(layer, name, u_KTBI) for name in ("decay", "input"))
        rate_KI = -SHARPNESS * by_entry(F.softplus, -self.of(layer, "mixer.decay"))
        log_a_KTBI = rate_KI[:, None, None] * decay_KTBI
        share_KTBI = (-torch.expm1(2 * log_a_KTBI)).clamp(min=SMALLEST_SHARE)
        return diagonal_scan(log_a_KTBI.exp(), share_KTBI.sqrt() * (input_KTBI * u_KTBI))

    def leave(self, layer: int, y_KPI: Tensor, x_KPH: Tensor) -> Tensor:
        gate_KPI = F.gelu(self.linear(layer, "mixer.output_gate", self.normed(layer, x_KPH)))
        return self.linear(layer, "mixer.output", y_KPI * gate_KPI)

    def _gate(self, layer: int, name: str, u_KTBI: Tensor) -> Tensor:
        bias_K1I = self.of(layer, f"mixer.{name}_gate_bias")[:, None]
        return torch.sigmoid(self.linear(layer, f"mixer.{name}_gate", u_KTBI.flatten(1, 2)) + bias_K1I).view_as(u_KTBI)
