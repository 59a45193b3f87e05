"""Settings of the LRU."""

import math
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
    name = "lru"
    revision = 1
    packs_across_cells = True
    about = "complex diagonal transitions that do not depend on the input"
    title = "LRU"
    variant_titles = {"1": "LRU (1 layer)", "": "LRU ({} layers)"}
    looks = {"": Look("#66A61E", "v")}
    arrays_kept, arrays_evaluated, arrays_moved = 36, 14, (305, 535)
    launches = {PLAIN: Launches(66, per_layer=371)}

    smallest_modulus: float = setting(0.9, "least modulus of an initial eigenvalue")
    largest_modulus: float = setting(0.999, "greatest modulus of an initial eigenvalue, below 1")
    largest_phase: float = setting(2 * math.pi, "greatest phase of an initial eigenvalue")

    @property
    def transitions(self) -> Transitions:
        # Its eigenvalues are complex but do not depend on the input, and are below 1 in modulus.
        return Transitions(Family.FADING, self.layers)

    def mixer_shapes(self) -> dict[str, Shape]:
        H = self.width
        vectors: dict[str, Shape] = dict.fromkeys(("log_decay", "log_phase", "log_scale"), (H,))
        return vectors | {"input": (2 * H, H), "output": (H, 2 * H), "skip": (H,)}

    def mixing_flops(self, num_tokens: int) -> int:
        return 8 * self.width * num_tokens.bit_length()

    def problems(self) -> list[str]:
        found = ResidualConfig.problems(self)
        if not 0 <= self.smallest_modulus < self.largest_modulus < 1:
            found.append(
                f"moduli from {self.smallest_modulus} to {self.largest_modulus} are no ring within the unit circle: use"
                " smallest_modulus below largest_modulus, both from 0 to below 1"
            )
        if not self.largest_phase > 0:
            found.append(f"largest_phase {self.largest_phase} is no angle: use a positive number, at most 2π")
        return found
