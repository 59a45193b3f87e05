"""Mamba (Gu and Dao, 2023, arXiv:2312.00752), with the parameters of transformers' MambaForCausalLM.

    u, z = W_in norm(x);   x' = silu(conv(u));   (δ, B, C) = W_x x';   Δ = softplus(W_Δ δ + b_Δ)
    h_t = exp(Δ_t A) h_{t-1} + Δ_t B_t x'_t;   y_t = C_t h_t + D x'_t;   x + W_out (y silu(z))

Layers follow one another; logits = E norm(x) with E the tied embedding. Shapes beyond the package's: I inner channels,
N entries of state per channel. Time comes first, so that one position of all samples is contiguous.
"""

import math
from types import EllipsisType
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orch.models.config import Vocabulary
from orch.models.mamba.config import Config
from orch.models.mamba.scan import convolve, scan
from orch.models.network import PerTrial

NORM_EPSILON = 1e-5
INITIAL_DEVIATION = 0.1
TIME_STEPS = (0.001, 0.1)
"""Range in which Δ is initially log-uniform, before W_Δ adds to it."""
POSITIONS_AT_ONCE = 1 << 13
"""Number of positions to evaluate at once on a CPU. More would make the system allocate every intermediate result."""

Places = tuple[Tensor, Tensor] | EllipsisType
"""An index into (T, B): one place per sample, or all of them."""


class _Norm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, NORM_EPSILON)


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

    def forward(self, u_TBI: Tensor, places: Places) -> Tensor:
        """Return y at these places."""
        x_TBI = convolve(u_TBI, self.conv1d.weight, cast(Tensor, self.conv1d.bias))
        N = self.A_log.shape[1]
        step, B_TBN, C_TBN = self.x_proj(x_TBI).split([self.dt_proj.in_features, N, N], dim=-1)
        delta_TBI = F.softplus(self.dt_proj(step))
        y_TBI = scan(x_TBI, delta_TBI, self.A_log, B_TBN, C_TBN)
        return torch.addcmul(y_TBI[places], self.D, x_TBI[places])


class _Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.norm = _Norm(config.width)
        self.mixer = _Mixer(config)

    def enter(self, x: Tensor) -> Tensor:
        """Return u, which depends on each position alone."""
        return F.linear(self.norm(x), self.mixer.in_proj.weight.chunk(2)[0])

    def forward(self, x_TBD: Tensor, u_TBI: Tensor, places: Places) -> Tensor:
        """Return the block's output at these places."""
        y, x = self.mixer(u_TBI, places), x_TBD[places]
        z = F.linear(self.norm(x), self.mixer.in_proj.weight.chunk(2)[1])
        output: Tensor = x + self.mixer.out_proj(y * F.silu(z))
        return output


class _Backbone(nn.Module):
    def __init__(self, config: Config, vocabulary: Vocabulary):
        super().__init__()
        self.embeddings = nn.Embedding(vocabulary.size, config.width)
        nn.init.normal_(self.embeddings.weight, 0, INITIAL_DEVIATION)
        self.layers = nn.ModuleList(_Block(config) for _ in range(config.layers))
        self.norm_f = _Norm(config.width)

    def forward(self, tokens_TB: Tensor, places: Places) -> Tensor:
        x_TBD = self.embeddings(tokens_TB)
        blocks = cast(list[_Block], list(self.layers))
        for layer, block in enumerate(blocks, 1):
            # The vocabulary is tiny: the first block enters once per token, not once per position.
            u_TBI = block.enter(x_TBD) if layer > 1 else F.embedding(tokens_TB, block.enter(self.embeddings.weight))
            # Only the head reads the last block, and only at [EOI].
            x_TBD = block(x_TBD, u_TBI, places if layer == len(blocks) else ...)
        output: Tensor = self.norm_f(x_TBD)
        return output


class _Mamba(nn.Module):
    def __init__(self, config: Config, vocabulary: Vocabulary):
        super().__init__()
        self.backbone = _Backbone(config, vocabulary)

    def forward(self, tokens_BT: Tensor, end_B: Tensor) -> Tensor:
        if torch.is_grad_enabled() or tokens_BT.is_cuda:
            return self._answer(tokens_BT, end_B)
        num_samples = max(POSITIONS_AT_ONCE // tokens_BT.shape[1], 1)
        return torch.cat(list(map(self._answer, torch.split(tokens_BT, num_samples), torch.split(end_B, num_samples))))

    def _answer(self, tokens_BT: Tensor, end_B: Tensor) -> Tensor:
        places = end_B, torch.arange(len(end_B), device=end_B.device)
        return F.linear(self.backbone(tokens_BT.T, places), self.backbone.embeddings.weight)


class Network(PerTrial):
    replayable = True

    @classmethod
    def skeleton(cls, config: Config, vocabulary: Vocabulary) -> nn.Module:
        return _Mamba(config, vocabulary)
