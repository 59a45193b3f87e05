"""Settings of the factored bilinear model."""

import math
from dataclasses import dataclass

from orch.core.settings import setting
from orch.models.config import BilinearFamilyConfig, Shape
from orch.models.look import Look


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(BilinearFamilyConfig):
    name = "factored"
    revision = 3
    compiled_from = 128
    about = "A(x) = W1 diag(Wx x) W2^T: the bilinear tensor as a sum of R rank-one terms"
    title = "Factored"
    variant_titles = {"": "Factored (rank {})"}
    looks = {"": Look("#0072B2", "s")}
    small_settings = {"rank": 8}

    rank: int = setting(256, "number of factors, R")

    @property
    def summary(self) -> str:
        return f"rank {self.rank}"

    @property
    def initial_growth(self) -> float:
        weight = self.init_scale / math.sqrt(3)
        return weight**3 * self.embedding_scale * self.width * math.sqrt(self.rank)

    def recurrence_shapes(self) -> dict[str, Shape]:
        factors = (self.width, self.rank)
        return {"out": factors, "into": factors, "gate": factors}

    def recurrence_flops(self, readable: int, num_positions: int) -> int:
        H, F = self.width, self.rank
        through_factors = 4 * num_positions * H * F
        multiplied_out = 2 * H * H * (readable * F + num_positions)
        return 2 * readable * H * F + min(through_factors, multiplied_out)

    def transition_size(self, readable: int, num_positions: int) -> int:
        H, F = self.width, self.rank
        multiplied_out = readable * H * F + num_positions * H < 2 * num_positions * F
        return H * H if multiplied_out else 2 * F

    def problems(self) -> list[str]:
        found = BilinearFamilyConfig.problems(self)
        if self.rank < 1:
            found.append(f"rank {self.rank} leaves no factors: use 1 or more")
        return found
