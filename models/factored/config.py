"""Settings of the factored bilinear model."""

import math
from dataclasses import dataclass

from orch.core.settings import setting
from orch.models.bilinear_family.config import BilinearFamilyConfig
from orch.models.config import Shape, Vocabulary
from orch.models.kernel import COMPILED, PLAIN, TRITON
from orch.models.look import Look
from orch.models.step_costs import Launches
from orch.tasks.algebra import Family, Transitions


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(BilinearFamilyConfig):
    name = "factored"
    revision = 3
    packs_across_cells = True
    compiled_from = 128
    gpu_kernels = True
    about = "A(x) = W1 diag(Wx x) W2^T: the bilinear tensor as a sum of R rank-one terms"
    title = "Factored"
    variant_titles = {"": "Factored (rank {})"}
    looks = {"": Look("#0072B2", "s")}
    small_settings = {"rank": 8}
    launches = {
        PLAIN: Launches(32, per_position=30),
        COMPILED: Launches(11, per_position=4, for_each_trial=True),
        TRITON: Launches(29, per_position=8),
    }

    rank: int = setting(256, "number of factors, R")

    @property
    def summary(self) -> str:
        return f"rank {self.rank}"

    @property
    def initial_growth(self) -> float:
        weight = self.init_scale / math.sqrt(3)
        return weight**3 * self.embedding_scale * self.width * math.sqrt(self.rank)

    @property
    def transitions(self) -> Transitions:
        return Transitions(Family.DENSE, rank=self.rank)

    def recurrence_shapes(self) -> dict[str, Shape]:
        factors = (self.width, self.rank)
        return {"out": factors, "into": factors, "gate": factors}

    def recurrence_flops(self, readable: int, num_positions: int) -> int:
        H, F = self.width, self.rank
        through_factors = 4 * num_positions * H * F
        multiplied_out = 2 * H * H * (readable * F + num_positions)
        return 2 * readable * H * F + min(through_factors, multiplied_out)

    def _multiplies_out(self, readable: int, num_positions: int) -> bool:
        """Return whether the factors are multiplied out, once per token: see `recurrence/factored.py`."""
        H, F = self.width, self.rank
        return readable * H * F + num_positions * H < 2 * num_positions * F

    def launches_of(self, kernel: str, vocabulary: Vocabulary, num_positions: int) -> Launches:
        if kernel == PLAIN and self._multiplies_out(vocabulary.readable, num_positions):
            return Launches(33, per_position=13, per_token=11)
        return BilinearFamilyConfig.launches_of(self, kernel, vocabulary, num_positions)

    def num_entries(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str) -> float:
        num_positions = num_samples * num_tokens
        if self._multiplies_out(vocabulary.readable, num_positions):
            return num_positions * (2 * self.width + self.rank / 4)
        return 3 * num_positions * (self.width + self.rank)

    def moved_numbers(
        self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str, training: bool
    ) -> float:
        num_positions = num_samples * num_tokens
        if kernel != PLAIN:
            per_position = 16 * self.width + 32 * self.rank if training else 5.3 * self.width + 5.5 * self.rank
        elif self._multiplies_out(vocabulary.readable, num_positions):
            return BilinearFamilyConfig.moved_numbers(self, vocabulary, num_samples, num_tokens, kernel, training)
        else:
            per_position = 26 * self.width + 63 * self.rank if training else 8.4 * self.width + 6.3 * self.rank
        return num_positions * per_position

    def transition_size(self, readable: int, num_positions: int) -> int:
        return self.width**2 if self._multiplies_out(readable, num_positions) else 2 * self.rank

    def choices(self, vocabulary: Vocabulary, num_positions: int) -> tuple[bool, ...]:
        return (self._multiplies_out(vocabulary.readable, num_positions),)

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
