"""Settings of the full bilinear model."""

from dataclasses import dataclass

from orch.models.bilinear_family.config import BilinearFamilyConfig
from orch.models.config import Shape
from orch.models.kernel import COMPILED, PLAIN, TRITON
from orch.models.look import Look
from orch.models.step_costs import Launches
from orch.tasks.algebra import Family, Transitions


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(BilinearFamilyConfig):
    name = "bilinear"
    revision = 3
    packs_across_cells = True
    compiled_from = 1
    gpu_kernels = True
    token_tables = ("recurrence.transition",)
    about = "h' = A(x) h, with A(x) any matrix linear in the input"
    title = "Bilinear"
    looks = {"": Look("#000000", "o")}
    launches = {
        PLAIN: Launches(30, per_position=13, per_token=3),
        COMPILED: Launches(11, for_each_trial=True),
        TRITON: Launches(25, per_position=2),
    }

    @property
    def transitions(self) -> Transitions:
        return Transitions(Family.DENSE)

    def recurrence_shapes(self) -> dict[str, Shape]:
        return {"transition": (self.width, self.width, self.width)}

    def recurrence_flops(self, readable: int, num_positions: int) -> int:
        return 2 * self.width**2 * (readable * self.width + num_positions)
