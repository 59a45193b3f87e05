"""Settings of the rotation model (R2 block-diagonal)."""

from dataclasses import dataclass

from orch.models.bilinear_family.config import BilinearFamilyConfig
from orch.models.config import Shape, Vocabulary
from orch.models.kernel import COMPILED, PLAIN, TRITON
from orch.models.look import Look
from orch.models.step_costs import Launches
from orch.tasks.algebra import Family, Transitions


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(BilinearFamilyConfig):
    name = "rotation"
    revision = 3
    packs_across_cells = True
    compiled_from = 1
    gpu_kernels = True
    token_tables = ("recurrence.angle",)
    about = "A(x) made of 2x2 rotations, their angles linear in the input (R2)"
    title = "Rotation"
    looks = {"": Look("#009E73", "D")}
    own_learning_rates = {"laptop": (3e-3, 1e-3)}
    launches = {
        PLAIN: Launches(27, per_position=16),
        COMPILED: Launches(11, for_each_trial=True),
        TRITON: Launches(27),
    }

    @property
    def state_block(self) -> int:
        return 2

    @property
    def initial_growth(self) -> float:
        return 1.0

    @property
    def transitions(self) -> Transitions:
        return Transitions(Family.ROTATIONS, adds=self.additive != "none")

    def recurrence_shapes(self) -> dict[str, Shape]:
        return {"angle": (self.width // 2, self.width)}

    def recurrence_flops(self, readable: int, num_positions: int) -> int:
        return self.width * (readable * self.width + 4 * num_positions)

    def num_entries(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str) -> float:
        return 2 * num_samples * num_tokens * self.width

    def problems(self) -> list[str]:
        found = BilinearFamilyConfig.problems(self)
        if self.width > 0 and self.width % 2:
            found.append(f"width {self.width} is odd and a rotation turns pairs: use {self.width + 1}")
        return found
