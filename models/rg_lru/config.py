"""Settings of the RG-LRU."""

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
    name = "rg_lru"
    revision = 1
    packs_across_cells = True
    about = "gated linear recurrence: positive diagonal transitions"
    title = "RG-LRU"
    variant_titles = {"1": "RG-LRU (1 layer)", "": "RG-LRU ({} layers)"}
    looks = {"": Look("#1B9E77", "^")}
    arrays_kept, arrays_evaluated, arrays_moved = 40, 15, (343, 566)
    launches = {PLAIN: Launches(66, per_layer=267)}

    kernel_size: int = setting(4, "width of the causal convolution")

    @property
    def transitions(self) -> Transitions:
        return Transitions(Family.POSITIVE_DIAGONAL, self.layers)

    def mixer_shapes(self) -> dict[str, Shape]:
        H = self.width
        return {
            "input": (H, H),
            "convolution": (H, 1, self.kernel_size),
            "convolution_bias": (H,),
            "decay_gate": (H, H),
            "decay_gate_bias": (H,),
            "input_gate": (H, H),
            "input_gate_bias": (H,),
            "decay": (H,),
            "output_gate": (H, H),
            "output": (H, H),
        }

    def mixing_flops(self, num_tokens: int) -> int:
        return self.width * (2 * self.kernel_size + 3 * num_tokens.bit_length())

    def problems(self) -> list[str]:
        found = ResidualConfig.problems(self)
        if self.kernel_size < 1:
            found.append(f"kernel_size {self.kernel_size} is no width: use 1 or more")
        return found
