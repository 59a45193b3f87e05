"""Mamba (Gu and Dao, 2023, arXiv:2312.00752), with the parameters of transformers' MambaForCausalLM.

    u, z = W_in norm(x);   x' = silu(conv(u));   (δ, B, C) = W_x x';   Δ = softplus(W_Δ δ + b_Δ)
    h_t = exp(Δ_t A) h_{t-1} + Δ_t B_t x'_t;   y_t = C_t h_t + D x'_t;   x + W_out (y silu(z))

Factors exp(Δ A) are in [0, 1]; with `negative_eigenvalues` they are 2 exp(Δ A) - 1, in [-1, 1] (Grazzi et al., 2025,
arXiv:2411.12537). Layers follow one another; logits = E norm(x) with E the tied embedding. All trials of a stack share
every product.
Shapes beyond the package's: I inner channels, N entries of state per channel, P positions of one trial, T x B of them.
Time comes before samples, so that one position of all samples is contiguous.
"""

import math
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orch.models.config import Vocabulary
from orch.models.kernel import COMPILED, TRITON, is_compiled
from orch.models.mamba.config import Config
from orch.models.mamba.scan import convolve, scan
from orch.models.network import Network as StackedNetwork
from orch.models.network import parameters_like_torch
from orch.models.places import places_of
from orch.models.vocabularies import stack_padded
from orch.models.wrapped_module import State

if TYPE_CHECKING:
    from orch.models.token_table import Gradient

NORM_EPSILON = 1e-5
INITIAL_DEVIATION = 0.1
TIME_STEPS = (0.001, 0.1)
"""Range in which Δ is initially log-uniform, before W_Δ adds to it."""
POSITIONS_AT_ONCE = 1 << 13
"""Number of positions to evaluate at once on a CPU. More would make the system allocate every intermediate result."""


class Network(StackedNetwork):
    config: Config

    @classmethod
    def fresh(cls, config: Config, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        return parameters_like_torch(lambda: _Parameters(config, vocabulary), generator)

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        if self.kernel == TRITON:
            from orch.models.gpu_kernels.mamba import answer

            logits_KBV = answer(self.__getitem__, self.config.layers, NORM_EPSILON, tokens_KBT, end_KB)
            return self.without_padding(logits_KBV)
        # Padding has no embedding. Any token will do, because a causal model cannot see what follows [EOI].
        readable_KBT = tokens_KBT.clamp(max=self.vocabulary.readable - 1)
        if torch.is_grad_enabled() or tokens_KBT.is_cuda:
            return self._answer(readable_KBT, end_KB)
        K, _, T = tokens_KBT.shape
        num_samples = max(POSITIONS_AT_ONCE // (K * T), 1)
        parts = (torch.split(each, num_samples, dim=1) for each in (readable_KBT, end_KB))
        return torch.cat(list(map(self._answer, *parts)), dim=1)

    @torch.no_grad()
    def compiled_gradients(self, tokens_KBT: Tensor, target_KB: Tensor) -> "tuple[Tensor, dict[str, Gradient]]":
        if self.kernel == COMPILED:
            return self.gradients_around_compiled(tokens_KBT, target_KB)  # only the scan is compiled
        from orch.models.compiled.mamba_step import loss_and_gradients  # numba may be missing

        batches = zip(tokens_KBT, target_KB, self.vocabularies.each, strict=True)
        answers = [
            loss_and_gradients(
                self.member(trial), self.config.layers, tokens_BT, target_B, vocabulary.readable, NORM_EPSILON
            )
            for trial, (tokens_BT, target_B, vocabulary) in enumerate(batches)
        ]
        gradients: dict[str, Gradient] = {
            name: stack_padded([each.gradients[name] for each in answers]) for name in self.names
        }
        return torch.stack([each.loss for each in answers]), gradients

    def _answer(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        K, B, T = tokens_KBT.shape
        E_KVH = self["backbone.embeddings.weight"]
        trials_K = torch.arange(K, device=tokens_KBT.device)
        rows_KTB = tokens_KBT.mT + (trials_K * self.vocabulary.size)[:, None, None]
        places_N = places_of(end_KB, T)
        x_KPH = F.embedding(rows_KTB, E_KVH.flatten(0, 1)).flatten(1, 2)
        for layer in range(self.config.layers):
            # The vocabulary is tiny: the first block enters once per token, not once per position.
            if layer == 0:
                entered_KVI = self.vocabularies.by_token(_enter, _normalise(E_KVH), *self._entry(layer), unread=True)
                u_KTBI = F.embedding(rows_KTB, entered_KVI.flatten(0, 1))
            else:
                u_KTBI = _enter(_normalise(x_KPH), *self._entry(layer)).view(K, T, B, -1)
            y_KPI, x_KPI = self._mix(layer, u_KTBI)
            if layer == self.config.layers - 1:  # only the head reads the last block, and only where it is asked
                at_end = (each.flatten(0, 1).index_select(0, places_N) for each in (x_KPH, y_KPI, x_KPI))
                x_KPH, y_KPI, x_KPI = (each.view(K, -1, each.shape[-1]) for each in at_end)
            y_KPI = torch.addcmul(y_KPI, self._of(layer, "mixer.D")[:, None], x_KPI)
            z_KPI = torch.bmm(self._norm(layer, x_KPH), self._of(layer, "mixer.in_proj.weight").chunk(2, dim=1)[1].mT)
            x_KPH = x_KPH + torch.bmm(y_KPI * F.silu(z_KPI), self._of(layer, "mixer.out_proj.weight").mT)
        normed_KBH = _normalise(x_KPH) * self["backbone.norm_f.weight"][:, None]
        return self.logits(lambda x_KBH, E_KVH: torch.bmm(x_KBH, E_KVH.mT), normed_KBH, E_KVH)

    def _of(self, layer: int, name: str) -> Tensor:
        return self[f"backbone.layers.{layer}.{name}"]

    def _norm(self, layer: int, x_KPH: Tensor) -> Tensor:
        return _normalise(x_KPH) * self._of(layer, "norm.weight")[:, None]

    def _entry(self, layer: int) -> tuple[Tensor, Tensor]:
        return self._of(layer, "norm.weight"), self._of(layer, "mixer.in_proj.weight")

    def _mix(self, layer: int, u_KTBI: Tensor) -> tuple[Tensor, Tensor]:
        """Return y without its skip connection, and x', at every position: (K, P, I) each."""
        rank, N = self.config.time_step_rank, self.config.state_size
        weight_KI1J, bias_KI = (self._of(layer, f"mixer.conv1d.{name}") for name in ("weight", "bias"))
        x_KTBI = convolve(u_KTBI, weight_KI1J, bias_KI, packages=not self.config.negative_eigenvalues)
        x_KPI = x_KTBI.flatten(1, 2)
        projected = torch.bmm(x_KPI, self._of(layer, "mixer.x_proj.weight").mT)
        step, B_KPN, C_KPN = torch.split(projected, [rank, N, N], dim=-1)
        bias_KI, weight_KIr = (self._of(layer, f"mixer.dt_proj.{name}") for name in ("bias", "weight"))
        delta_KPI = F.softplus(torch.baddbmm(bias_KI[:, None], step, weight_KIr.mT))
        inputs = (torch.unflatten(each, 1, x_KTBI.shape[1:3]) for each in (delta_KPI, B_KPN, C_KPN))
        delta_KTBI, B_KTBN, C_KTBN = inputs
        A_log_KIN, negative = self._of(layer, "mixer.A_log"), self.config.negative_eigenvalues
        y_KTBI = scan(x_KTBI, delta_KTBI, A_log_KIN, B_KTBN, C_KTBN, is_compiled(self.kernel), negative)
        return y_KTBI.flatten(1, 2), x_KPI


def _normalise(x_KPH: Tensor) -> Tensor:
    return F.rms_norm(x_KPH, x_KPH.shape[-1:], eps=NORM_EPSILON)


def _enter(normalised_KPH: Tensor, norm_KH: Tensor, weight_KIH: Tensor) -> Tensor:
    """Return u, which depends on each position alone."""
    return torch.bmm(normalised_KPH * norm_KH[:, None], weight_KIH.chunk(2, dim=1)[0].mT)


class _Parameters(nn.Module):
    """Initial parameters of one trial, in the names of transformers."""

    def __init__(self, config: Config, vocabulary: Vocabulary):
        super().__init__()
        self.backbone = nn.Module()
        self.backbone.embeddings = nn.Embedding(vocabulary.size, config.width)
        nn.init.normal_(self.backbone.embeddings.weight, 0, INITIAL_DEVIATION)
        self.backbone.layers = nn.ModuleList(_Block(config) for _ in range(config.layers))
        self.backbone.norm_f = _Norm(config.width)


class _Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.norm = _Norm(config.width)
        self.mixer = _Mixer(config)


class _Norm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))


class _Mixer(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        H, I, N, rank = config.width, config.inner, config.state_size, config.time_step_rank  # noqa: E741
        self.A_log = nn.Parameter(torch.arange(1.0, N + 1).log().repeat(I, 1))
        self.D = nn.Parameter(torch.ones(I))
        self.conv1d = nn.Conv1d(I, I, config.kernel_size, groups=I)
        self.in_proj = nn.Linear(H, 2 * I, bias=False)
        self.x_proj = nn.Linear(I, rank + 2 * N, bias=False)
        self.dt_proj = nn.Linear(rank, I)
        self.out_proj = nn.Linear(I, H, bias=False)
        self._initialise(rank)

    @torch.no_grad()
    def _initialise(self, rank: int) -> None:
        """Initialise like transformers, which leaves the convolution's weight and `out_proj` as torch.nn draws them."""
        cast(Tensor, self.conv1d.bias).zero_()
        self.in_proj.weight.normal_(0, INITIAL_DEVIATION)
        self.x_proj.weight.normal_(0, INITIAL_DEVIATION)
        self.dt_proj.weight.uniform_(-(rank**-0.5), rank**-0.5)
        delta_I = self.dt_proj.bias.uniform_(*map(math.log, TIME_STEPS)).exp()
        self.dt_proj.bias.copy_(delta_I.expm1().log())  # the inverse of softplus
