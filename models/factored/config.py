"""Settings of the factored bilinear model."""

from dataclasses import dataclass

from orch.core.settings import setting
from orch.models.config import BilinearFamilyConfig, Shape, Vocabulary
from orch.models.look import Look


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(BilinearFamilyConfig):
    name = "factored"
    revision = 3
    compiled_from = 128
    gpu_kernels = True
    about = "A(x) = W1 diag(Wx x) W2^T: the bilinear tensor as a sum of R rank-one terms"
    title = "Factored"
    variant_titles = {"": "Factored (rank {})"}
    looks = {"": Look("#0072B2", "s")}
    small_settings = {"rank": 8}

    rank: int = setting(256, "number of factors, R")

    @property
    def summary(self) -> str:
        return f"rank {self.rank}"

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

    def gpu_kernel_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        # Training keeps a state, a product and their gradients at every position; the gates have two gradients.
        H, F, num_positions = self.width, self.rank, num_samples * num_tokens
        kept = (2 * H + 3 * F) * num_positions if training else 0
        passing = (6 * num_samples + 4 * vocabulary.readable) * (H + F)
        return kept + passing + self._index_memory(vocabulary, num_positions)

    def problems(self) -> list[str]:
        found = BilinearFamilyConfig.problems(self)
        if self.rank < 1:
            found.append(f"rank {self.rank} leaves no factors: use 1 or more")
        return found
