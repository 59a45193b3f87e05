"""Linear Recurrent Unit: Orvieto et al. (2023, arXiv:2303.06349).

    h_t = λ ∘ h_{t-1} + γ ∘ (B x_t);    y_t = Re(C h_t) + D ∘ x_t;    λ = exp(-e^ν + i e^θ), so that |λ| < 1

h, B and C are complex, and kept as real and imaginary parts. At first λ is uniform in a ring, and γ = √(1 - |λ|²).
Blocks have a gated perceptron after the recurrence.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from orch.models.config import Vocabulary
from orch.models.lru.config import Config
from orch.models.network import State, normal
from orch.models.recurrence.diagonal import constant_scan
from orch.models.residual.config import ResidualConfig
from orch.models.residual.network import ResidualNetwork, by_entry


class Network(ResidualNetwork):
    config: Config

    @classmethod
    def fresh(cls, config: ResidualConfig, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        state = ResidualNetwork.fresh.__func__(cls, config, vocabulary, generator)  # type: ignore[attr-defined]
        for layer in range(config.layers):
            decay = state[f"blocks.{layer}.mixer.log_decay"].exp()
            state[f"blocks.{layer}.mixer.log_scale"] = (-torch.expm1(-2 * decay)).log() / 2
        return dict(state)

    @classmethod
    def draw(cls, config: ResidualConfig, name: str, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        assert isinstance(config, Config)
        unit = torch.empty(*shape)
        if name.endswith("log_decay"):
            squares = unit.uniform_(config.smallest_modulus**2, config.largest_modulus**2, generator=generator)
            return (-squares.log() / 2).log()
        if name.endswith("log_phase"):
            return (config.largest_phase * (1 - unit.uniform_(generator=generator))).log()
        if name.endswith("log_scale"):
            return unit.zero_()  # follows from the decays
        if name.endswith("skip"):
            return normal(shape, 1.0, generator)
        if name.endswith(("mixer.input", "mixer.output")):
            return normal(shape, 1 / math.sqrt(2 * config.width), generator)
        return ResidualNetwork.draw(config, name, shape, generator)

    def enter(self, layer: int, x_KPH: Tensor) -> Tensor:
        scale_KI = by_entry(torch.exp, self.of(layer, "mixer.log_scale"))
        return self.linear(layer, "mixer.input", x_KPH) * scale_KI.repeat(1, 2)[:, None]

    def scan(self, layer: int, entered_KTBG: Tensor, end_KB: Tensor) -> Tensor:
        decay_KI, phase_KI = (by_entry(torch.exp, self.of(layer, f"mixer.log_{name}")) for name in ("decay", "phase"))
        modulus_KI = by_entry(torch.exp, -decay_KI)
        parts = (modulus_KI * by_entry(part, phase_KI) for part in (torch.cos, torch.sin))
        real, imaginary = (each[:, None, None] for each in parts)
        return torch.cat(constant_scan((real, imaginary), entered_KTBG.chunk(2, dim=-1)), dim=-1)  # type: ignore[arg-type]

    def leave(self, layer: int, y_KPI: Tensor, x_KPH: Tensor) -> Tensor:
        skipped_KPH = self.of(layer, "mixer.skip")[:, None] * self.normed(layer, x_KPH)
        return self.linear(layer, "mixer.output", y_KPI) + skipped_KPH
