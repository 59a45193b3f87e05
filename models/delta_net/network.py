"""DeltaNet: Schlag et al. (2021, arXiv:2102.11174); Yang et al. (2024, arXiv:2406.06484), whose layers these are.

    q, k, v = silu(conv(W x)), q and k divided by their norms, for each head;   β = σ(w·x), or 2 σ(w·x)
    S_t = S_{t-1} (I - β_t k_t k_tᵀ) + β_t v_t k_tᵀ;    o_t = S_t q_t;    W_o norm(o)

Transitions have the eigenvalue 1 - β: in [0, 1], or with 2 σ in [-1, 1] (Grazzi et al., 2025, arXiv:2411.12537).
Shapes beyond the package's: a heads of d components, n writes of a token, N = K B a sequences of heads, J lags.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orch.models.autograd import apply_function
from orch.models.delta_net.config import DeltaConfig
from orch.models.kernel import COMPILED_2, is_compiled
from orch.models.mamba.scan import convolve
from orch.models.recurrence.delta_rule import CHUNK, delta_rule
from orch.models.residual.config import ResidualConfig
from orch.models.residual.network import NORM_EPSILON, ResidualNetwork, by_entry, rms_norm

if TYPE_CHECKING:
    from orch.models.token_table import Gradient

SMALLEST_NORM = 1e-6
"""Least norm by which a query or a key is divided."""


class Network(ResidualNetwork):
    config: DeltaConfig

    def enter(self, layer: int, x_KPH: Tensor) -> Tensor:
        beta_KPG = torch.sigmoid(self.linear(layer, "mixer.beta", x_KPH))
        if self.config.negative_eigenvalues:
            beta_KPG = 2 * beta_KPG
        return torch.cat([self.linear(layer, "mixer.projection", x_KPH), beta_KPG], dim=-1)

    def scan(self, layer: int, entered_KTBG: Tensor, end_KB: Tensor) -> Tensor:
        if self._is_compiled(entered_KTBG):
            return self._compiled_scan(layer, entered_KTBG, end_KB, only_end=False)
        H, a, n = self.config.width, self.config.heads, self.config.num_writes
        sizes = [(1 + 2 * n) * H, n * a, a if self.config.is_gated else 0]
        projected, beta, decay = torch.split(entered_KTBG, sizes, dim=-1)
        q, k, v = torch.split(self._convolve(layer, projected), [H, n * H, n * H], dim=-1)
        q, k, v = (self._by_head(each, count) for each, count in ((q, 1), (k, n), (v, n)))
        q, k = (F.normalize(each, dim=-1, eps=SMALLEST_NORM) for each in (q, k))
        log_decay_NW = None
        if self.config.is_gated:  # a token decays the state once, before its first write
            log_decay_NW = F.pad(self._by_head(decay, 1), (0, n - 1)).flatten(1)
        o_NTd = delta_rule(q, k, v, self._by_head(beta, n)[..., 0], log_decay_NW)
        K, T, B, _ = entered_KTBG.shape
        return o_NTd.view(K, B, a, T, -1).permute(0, 3, 1, 2, 4).flatten(3)

    def scan_to_end(self, layer: int, entered_KTBG: Tensor, end_KB: Tensor) -> Tensor:
        if self._is_compiled(entered_KTBG):
            return self._compiled_scan(layer, entered_KTBG, end_KB, only_end=True)[:, 0]
        return ResidualNetwork.scan_to_end(self, layer, entered_KTBG, end_KB)

    def leave(self, layer: int, y_KPI: Tensor, x_KPH: Tensor) -> Tensor:
        return self.linear(layer, "mixer.output", self.normed_by_head(layer, y_KPI))

    def normed_by_head(self, layer: int, y_KPI: Tensor) -> Tensor:
        """Return what the heads read, each divided by its root mean square and scaled."""
        by_head_KPad = torch.unflatten(y_KPI, -1, (self.config.heads, -1))
        return rms_norm(by_head_KPad, self.of(layer, "mixer.output_norm")).flatten(2)

    def _convolve(self, layer: int, x_KTBG: Tensor) -> Tensor:
        if not self.config.kernel_size:
            return F.silu(x_KTBG)
        weight_KG1J = self.of(layer, "mixer.convolution")
        return convolve(x_KTBG, weight_KG1J, weight_KG1J.new_zeros(weight_KG1J.shape[:2]))

    def _by_head(self, x_KTBG: Tensor, count: int) -> Tensor:
        """Return vectors as one sequence per head, of `count` vectors a token: (N, count T, d)."""
        vectors_KTBnad = torch.unflatten(x_KTBG, -1, (count, self.config.heads, -1))
        return vectors_KTBnad.permute(0, 2, 4, 1, 3, 5).flatten(0, 2).flatten(1, 2)

    def compiled_gradients(self, tokens_KBT: Tensor, target_KB: Tensor) -> "tuple[Tensor, dict[str, Gradient]]":
        """Return losses and gradients from a step that is all machine code, or of which only the scan is."""
        if self.kernel != COMPILED_2 or not self._fits(self["embedding"], tokens_KBT.shape[2]):
            return self.gradients_around_compiled(tokens_KBT, target_KB)
        from orch.models.compiled.delta_step import Options, loss_and_gradients  # numba may be missing

        config = self.config
        options = Options(
            layers=config.layers,
            heads=config.heads,
            num_writes=config.num_writes,
            largest_beta=config.largest_beta,
            norm_epsilon=NORM_EPSILON,
            smallest_norm=SMALLEST_NORM,
        )
        return loss_and_gradients(
            self.__getitem__, self.names, self.trained_names, tokens_KBT, target_KB, self.vocabularies, options
        )

    def _is_compiled(self, entered_KTBG: Tensor) -> bool:
        return is_compiled(self.kernel) and self._fits(entered_KTBG, entered_KTBG.shape[1])

    def _fits(self, numbers: Tensor, num_tokens: int) -> bool:
        """Return whether compiled kernels can run. Their work grows with the square of the length."""
        return numbers.dtype == torch.float32 and num_tokens * self.config.num_writes <= CHUNK

    def _compiled_scan(self, layer: int, entered_KTBG: Tensor, end_KB: Tensor, only_end: bool) -> Tensor:
        if self.config.kernel_size:
            weight_KG1J = self.of(layer, "mixer.convolution")
        else:
            weight_KG1J = entered_KTBG.new_ones(len(end_KB), (1 + 2 * self.config.num_writes) * self.config.width, 1, 1)
        options = self.config.heads, self.config.num_writes, SMALLEST_NORM, only_end
        return apply_function(_CompiledScan, entered_KTBG, weight_KG1J, end_KB, *options)


class _CompiledScan(torch.autograd.Function):
    """Convolution, norms and delta rule as machine code: see `orch.models.compiled.delta_rule`."""

    @staticmethod
    def forward(ctx: Any, x_KTBE: Tensor, weight_KG1J: Tensor, end_KB: Tensor, *options: Any) -> Tensor:
        from orch.models.compiled.delta_rule import delta_forward  # numba may be missing

        ctx.save_for_backward(x_KTBE, weight_KG1J, end_KB)
        ctx.options = options
        return delta_forward(x_KTBE, weight_KG1J, end_KB, *options)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        from orch.models.compiled.delta_rule import delta_backward

        return *delta_backward(g, *ctx.saved_tensors, *ctx.options), None, *[None] * len(ctx.options)


class GatedNetwork(Network):
    """Adds a decay of the state, α = exp(-e^A softplus(w·x + b)), and a gate of the output, if the settings say so."""

    @classmethod
    def draw(cls, config: ResidualConfig, name: str, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        if name.endswith("decay_rate"):  # e^A is uniform in [1, 16], as in Mamba-2
            return torch.empty(*shape).uniform_(1, 16, generator=generator).log_()
        if name.endswith("decay_bias"):  # the inverse of softplus of a time step that is log-uniform
            step = torch.empty(*shape).uniform_(-6.9, -2.3, generator=generator).exp_()
            return step.expm1().log()
        return ResidualNetwork.draw(config, name, shape, generator)

    def enter(self, layer: int, x_KPH: Tensor) -> Tensor:
        entered_KPG = Network.enter(self, layer, x_KPH)
        if not self.config.is_gated:
            return entered_KPG
        bias_K1a = self.of(layer, "mixer.decay_bias")[:, None]
        rate_Ka = by_entry(torch.exp, self.of(layer, "mixer.decay_rate"))
        step_KPa = F.softplus(self.linear(layer, "mixer.decay", x_KPH) + bias_K1a)
        return torch.cat([entered_KPG, -rate_Ka[:, None] * step_KPa], dim=-1)

    def leave(self, layer: int, y_KPI: Tensor, x_KPH: Tensor) -> Tensor:
        if not self.config.is_gated:
            return Network.leave(self, layer, y_KPI, x_KPH)
        gate_KPH = F.silu(self.linear(layer, "mixer.output_gate", self.normed(layer, x_KPH)))
        return self.linear(layer, "mixer.output", self.normed_by_head(layer, y_KPI) * gate_KPH)
