"""DeltaNet: Schlag et al. (2021, arXiv:2102.11174); Yang et al. (2024, arXiv:2406.06484), whose layers these are.

    q, k, v = silu(conv(W x)), q and k divided by their norms, for each head;   β = σ(w·x), or 2 σ(w·x)
    S_t = S_{t-1} (I - β_t k_t k_tᵀ) + β_t v_t k_tᵀ;    o_t = S_t q_t;    W_o norm(o)

Transitions have the eigenvalue 1 - β: in [0, 1], or with 2 σ in [-1, 1] (Grazzi et al., 2025, arXiv:2411.12537).
Shapes beyond the package's: a heads of d components, n writes of a token, N = K B a sequences of heads.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from orch.models.delta_net.config import DeltaConfig
from orch.models.mamba.scan import convolve
from orch.models.recurrence.delta_rule import delta_rule
from orch.models.residual.network import ResidualNetwork, linear, rms_norm

NORM_EPSILON = 1e-6


class Network(ResidualNetwork):
    config: DeltaConfig

    def mix(self, layer: int, x_KTBH: Tensor) -> Tensor:
        (K, T, B, H), a, n = x_KTBH.shape, self.config.heads, self.config.num_writes
        projected_KTBG = linear(x_KTBH, self.of(layer, "mixer.projection"))
        q, k, v = (
            self._by_head(each, n if place else 1)
            for place, each in enumerate(torch.split(self._convolve(layer, projected_KTBG), [H, n * H, n * H], dim=-1))
        )
        q, k = (F.normalize(each, dim=-1, eps=NORM_EPSILON) for each in (q, k))
        beta_KTBG = torch.sigmoid(linear(x_KTBH, self.of(layer, "mixer.beta")))
        beta_NW = self._by_head(2 * beta_KTBG if self.config.negative_eigenvalues else beta_KTBG, n)[..., 0]
        o_NTd = delta_rule(q, k, v, beta_NW, self._log_decay(layer, x_KTBH))
        o_KTBad = o_NTd.view(K, B, a, T, -1).permute(0, 3, 1, 2, 4)
        o_KTBH = rms_norm(o_KTBad, self.of(layer, "mixer.output_norm")).reshape(x_KTBH.shape)
        return linear(self._gated(layer, x_KTBH, o_KTBH), self.of(layer, "mixer.output"))

    def _convolve(self, layer: int, x_KTBG: Tensor) -> Tensor:
        if not self.config.kernel_size:
            return F.silu(x_KTBG)
        weight_KG1J = self.of(layer, "mixer.convolution")
        return convolve(x_KTBG, weight_KG1J, weight_KG1J.new_zeros(weight_KG1J.shape[:2]))

    def _by_head(self, x_KTBG: Tensor, count: int) -> Tensor:
        """Return vectors as one sequence per head, of `count` vectors a token: (N, count T, d)."""
        vectors_KTBnad = torch.unflatten(x_KTBG, -1, (count, self.config.heads, -1))
        return vectors_KTBnad.permute(0, 2, 4, 1, 3, 5).flatten(0, 2).flatten(1, 2)

    def _log_decay(self, layer: int, x_KTBH: Tensor) -> Tensor | None:
        """Return the logarithm of the decay before every write, (N, n T); None if the state does not decay."""
        return None

    def _gated(self, layer: int, x_KTBH: Tensor, o_KTBH: Tensor) -> Tensor:
        return o_KTBH


class GatedNetwork(Network):
    """Adds a decay of the state, α = exp(-e^A softplus(w·x + b)), and a gate of the output, if the settings say so."""

    @classmethod
    def draw(cls, name: str, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        if name.endswith("decay_rate"):  # e^A is uniform in [1, 16], as in Mamba-2
            return torch.empty(*shape).uniform_(1, 16, generator=generator).log_()
        if name.endswith("decay_bias"):  # the inverse of softplus of a time step that is log-uniform
            step = torch.empty(*shape).uniform_(-6.9, -2.3, generator=generator).exp_()
            return step.expm1().log()
        return ResidualNetwork.draw(name, shape, generator)

    def _log_decay(self, layer: int, x_KTBH: Tensor) -> Tensor | None:
        if not self.config.is_gated:
            return None
        bias_Ka, rate_Ka = (self.of(layer, f"mixer.decay_{name}")[:, None, None] for name in ("bias", "rate"))
        step_KTBa = F.softplus(linear(x_KTBH, self.of(layer, "mixer.decay")) + bias_Ka)
        decay_NT = self._by_head(-rate_Ka.exp() * step_KTBa, 1)[..., 0]
        # A token decays the state once, before its first write.
        return F.pad(decay_NT[..., None], (0, self.config.num_writes - 1)).flatten(1)

    def _gated(self, layer: int, x_KTBH: Tensor, o_KTBH: Tensor) -> Tensor:
        if not self.config.is_gated:
            return o_KTBH
        return o_KTBH * F.silu(linear(x_KTBH, self.of(layer, "mixer.output_gate")))
