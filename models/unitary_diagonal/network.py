"""Diagonal unitary recurrence whose phases depend on the input, after Arjovsky, Shah and Bengio (2016,
arXiv:1511.06464), who make a fixed unitary matrix of such diagonals.

    h_t = e^{iθ_t} ∘ h_{t-1} + B x_t;    θ_t = W x_t + b;    y_t = Re(C h_t)

h, B and C are complex, and kept as real and imaginary parts. No state ever decays, because all eigenvalues have modulus
1. So h_t is e^{iφ_t} ∘ Σ_s e^{-iφ_s} ∘ B x_s with φ_t = θ_1 + … + θ_t: two sums along time.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from orch.models.network import uniform
from orch.models.recurrence.diagonal import multiply
from orch.models.residual.config import ResidualConfig
from orch.models.residual.network import ResidualNetwork
from orch.models.unitary_diagonal.config import Config


class Network(ResidualNetwork):
    config: Config

    @classmethod
    def draw(cls, config: ResidualConfig, name: str, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        if name.endswith("phase_bias"):
            return uniform(shape, math.pi, generator)
        return ResidualNetwork.draw(config, name, shape, generator)

    def enter(self, layer: int, x_KPH: Tensor) -> Tensor:
        phase_KPI = self.linear(layer, "mixer.phase", x_KPH) + self.of(layer, "mixer.phase_bias")[:, None]
        return torch.cat([self.linear(layer, "mixer.input", x_KPH), phase_KPI], dim=-1)

    def scan(self, layer: int, entered_KTBG: Tensor, end_KB: Tensor) -> Tensor:
        real, imaginary, phase = entered_KTBG.chunk(3, dim=-1)
        turned = phase.cumsum(1)
        cosine, sine = turned.cos(), turned.sin()
        real, imaginary = (each.cumsum(1) for each in multiply((cosine, -sine), (real, imaginary)))
        return torch.cat(multiply((cosine, sine), (real, imaginary)), dim=-1)

    def leave(self, layer: int, y_KPI: Tensor, x_KPH: Tensor) -> Tensor:
        return self.linear(layer, "mixer.output", y_KPI)
