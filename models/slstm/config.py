"""Settings of the sLSTM."""

from dataclasses import dataclass

from orch.core.settings import setting
from orch.models.config import Shape
from orch.models.kernel import PLAIN
from orch.models.look import Look
from orch.models.residual.config import ResidualConfig
from orch.models.step_costs import Launches
from orch.tasks.algebra import Family, Transitions


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(ResidualConfig):
    name = "slstm"
    revision = 1
    packs_across_cells = True
    about = "xLSTM's scalar memory: exponential gates and recurrent weights"
    title = "sLSTM"
    variant_titles = {"1": "sLSTM (1 layer)", "": "sLSTM ({} layers)"}
    family = "Other models"
    looks = {"": Look("#D95F02", "<")}
    arrays_kept, arrays_evaluated, arrays_moved = 60, 16, (245, 456)
    launches = {PLAIN: Launches(66, per_layer=228, per_position=33)}

    heads: int = setting(4, "blocks of the recurrent matrices, among which the width is divided")

    @property
    def transitions(self) -> Transitions:
        return Transitions(Family.NONLINEAR, self.layers)

    def mixer_shapes(self) -> dict[str, Shape]:
        H = self.width
        return {"input": (4 * H, H), "bias": (4 * H,), "recurrent": (4 * H, H // self.heads), "output_norm": (H,)}

    def mixing_flops(self, num_tokens: int) -> int:
        return 20 * self.width

    def sequential_positions(self, num_tokens: int) -> int:
        return num_tokens * self.layers

    def problems(self) -> list[str]:
        found = ResidualConfig.problems(self)
        if self.heads < 1 or self.width % self.heads:
            found.append(f"width {self.width} cannot be divided among {self.heads} heads: change heads or width")
        return found
