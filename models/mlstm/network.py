"""mLSTM: Beck et al., "xLSTM" (2024, arXiv:2405.04517), the block with a matrix memory.

    u = W_up x;   c = silu(conv(u));   q, v, k = W_q c, W_v u, W_k c / √d;   log i, f̃ = W c + b;   f = σ(f̃)
    C_t = f_t C_{t-1} + i_t v_t k_tᵀ;   n_t = f_t n_{t-1} + i_t k_t;   h_t = C_t q_t / max(|n_t·q_t|, 1), for each head
    W_o ((norm(h) + s ∘ c) ∘ silu(W_g x))

The norm is RMS, for each head. The cell is in `orch.models.recurrence.mlstm`. Shapes beyond the package's: I inner
channels, a heads of d components, N = K B a sequences of heads.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from orch.models.mamba.scan import convolve
from orch.models.mlstm.config import Config
from orch.models.recurrence.mlstm import mlstm
from orch.models.residual.config import ResidualConfig
from orch.models.residual.network import ResidualNetwork, head_norm

FORGET_BIASES = (3.0, 6.0)
"""Initial biases of the forget gates, from the first head to the last: memories begin long."""


class Network(ResidualNetwork):
    config: Config

    @classmethod
    def draw(cls, config: ResidualConfig, name: str, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        if name.endswith("gates_bias"):
            input_gates = torch.empty(shape[0] // 2).normal_(0, 0.1, generator=generator)
            return torch.cat([input_gates, torch.linspace(*FORGET_BIASES, shape[0] // 2)])
        if name.endswith(("mixer.gates", "convolution_bias")):
            return torch.zeros(*shape)
        if name.endswith("skip"):
            return torch.ones(*shape)
        return ResidualNetwork.draw(config, name, shape, generator)

    def enter(self, layer: int, x_KPH: Tensor) -> Tensor:
        return self.linear(layer, "mixer.up", x_KPH)

    def scan(self, layer: int, entered_KTBG: Tensor, end_KB: Tensor) -> Tensor:
        K, T, B, _ = entered_KTBG.shape
        weight_KI1J, bias_KI = (self.of(layer, f"mixer.convolution{name}") for name in ("", "_bias"))
        c_KTBI = convolve(entered_KTBG, weight_KI1J, bias_KI)
        c_KPI, u_KPI = c_KTBI.flatten(1, 2), entered_KTBG.flatten(1, 2)
        q, k, v = (
            self._by_head(self.linear(layer, f"mixer.{name}", each), (K, T, B))
            for name, each in (("query", c_KPI), ("key", c_KPI), ("value", u_KPI))
        )
        gates_KPG = self.linear(layer, "mixer.gates", c_KPI) + self.of(layer, "mixer.gates_bias")[:, None]
        log_i, log_f = (self._by_head(each, (K, T, B))[..., 0] for each in gates_KPG.chunk(2, dim=-1))
        h_NTd = mlstm(q, k / math.sqrt(k.shape[-1]), v, log_i, F.logsigmoid(log_f))
        h_KTBI = h_NTd.view(K, B, self.config.heads, T, -1).permute(0, 3, 1, 2, 4).flatten(3)
        return torch.cat([h_KTBI, c_KTBI], dim=-1)

    def leave(self, layer: int, y_KPI: Tensor, x_KPH: Tensor) -> Tensor:
        h_KPI, c_KPI = y_KPI.chunk(2, dim=-1)
        normed_KPI = head_norm(h_KPI, self.config.heads, self.of(layer, "mixer.output_norm"))
        gate_KPI = F.silu(self.linear(layer, "mixer.output_gate", self.normed(layer, x_KPH)))
        skipped_KPI = self.of(layer, "mixer.skip")[:, None] * c_KPI
        return self.linear(layer, "mixer.output", (normed_KPI + skipped_KPI) * gate_KPI)

    def _by_head(self, x_KPI: Tensor, shape: tuple[int, int, int]) -> Tensor:
        """Return vectors as one sequence per head: (N, T, d)."""
        vectors_KTBad = x_KPI.view(*shape, self.config.heads, -1)
        return vectors_KTBad.permute(0, 2, 3, 1, 4).flatten(0, 2)
