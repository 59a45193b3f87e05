"""Settings of the unitary diagonal model."""

from dataclasses import dataclass

from orch.models.config import Shape
from orch.models.kernel import PLAIN
from orch.models.look import Look
from orch.models.residual.config import ResidualConfig
from orch.models.step_costs import Launches
from orch.tasks.algebra import Family, Transitions


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(ResidualConfig):
    name = "unitary_diagonal"
    revision = 1
    packs_across_cells = True
    about = "complex diagonal transitions of modulus 1, whose phases depend on the input"
    title = "Unitary diagonal"
    variant_titles = {"1": "Unitary diagonal (1 layer)", "": "Unitary diagonal ({} layers)"}
    looks = {"": Look("#E7298A", "d")}
    arrays_kept, arrays_evaluated, arrays_moved = 30, 16, (230, 419)
    launches = {PLAIN: Launches(66, per_layer=148)}

    @property
    def transitions(self) -> Transitions:
        return Transitions(Family.ROTATIONS, self.layers)

    def mixer_shapes(self) -> dict[str, Shape]:
        H = self.width
        return {"input": (2 * H, H), "phase": (H, H), "phase_bias": (H,), "output": (H, 2 * H)}

    def mixing_flops(self, num_tokens: int) -> int:
        return 16 * self.width
