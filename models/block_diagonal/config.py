"""Settings of the block-diagonal bilinear model. Block size 1 is the real diagonal."""

from dataclasses import dataclass

from orch.core.settings import setting
from orch.models.bilinear_family.config import ELEMENTWISE, BilinearFamilyConfig
from orch.models.config import Shape, Vocabulary
from orch.models.kernel import COMPILED, PLAIN, TRITON
from orch.models.look import DASH_DOT, DASHED, DOTTED, Look
from orch.models.step_costs import Launches
from orch.tasks.algebra import Family, Transitions

ONE_LAUNCH = 8
"""Largest block that a kernel for GPUs applies at all positions in one launch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(BilinearFamilyConfig):
    name = "block_diagonal"
    revision = 3
    packs_across_cells = True
    compiled_from = 1
    gpu_kernels = True
    token_tables = ("recurrence.transition",)
    about = "A(x) made of independent blocks; block size 1 is the real diagonal"
    title = "Block-diagonal"
    variant_titles = {"1": "Block 1 (real diagonal)", "": "Block {}"}
    looks = {
        "1": Look("#F0A070", "v", DOTTED, filled=False),
        "2": Look("#E8833F", "<", DASHED, filled=False),
        "8": Look("#D55E00", ">", DASH_DOT),
        "": Look("#A34700", "^"),
    }
    small_settings = {"block_size": 2}
    launches = {
        PLAIN: Launches(36, per_position=13, per_token=3),
        COMPILED: Launches(11, for_each_trial=True),
        TRITON: Launches(25, per_position=2),
    }

    block_size: int = setting(8, "size of the diagonal blocks; 1 is the real diagonal")

    @property
    def table_variant(self) -> str:
        return str(self.block_size)

    @property
    def summary(self) -> str:
        return f"block size {self.block_size}"

    @property
    def transitions(self) -> Transitions:
        if self.block_size == 1:
            return Transitions(Family.SIGNED_DIAGONAL, adds=self.additive != "none")
        return Transitions(Family.DENSE, size=self.block_size)

    @property
    def state_block(self) -> int:
        return self.block_size

    def recurrence_shapes(self) -> dict[str, Shape]:
        return {"transition": (self.block_size, self.block_size, self.width // self.block_size, self.width)}

    def recurrence_flops(self, readable: int, num_positions: int) -> int:
        return 2 * self.width * self.block_size * (readable * self.width + num_positions)

    def launches_of(self, kernel: str, vocabulary: Vocabulary, num_positions: int) -> Launches:
        if kernel == PLAIN and self.block_size <= ELEMENTWISE:
            return Launches(31, per_position=12) if self.block_size == 1 else Launches(14, per_position=16)
        if kernel == TRITON and self.block_size <= ONE_LAUNCH:
            return Launches(25)
        return BilinearFamilyConfig.launches_of(self, kernel, vocabulary, num_positions)

    def num_entries(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str) -> float:
        per_component = 1 + 0.5 * self.block_size if self.block_size <= ELEMENTWISE else 3
        return num_samples * num_tokens * self.width * per_component

    def problems(self) -> list[str]:
        found = BilinearFamilyConfig.problems(self)
        if self.width > 0 and (self.block_size < 1 or self.width % self.block_size):
            sizes = ", ".join(str(size) for size in range(1, self.width + 1) if self.width % size == 0)
            found.append(f"block_size {self.block_size} does not divide width {self.width}: use one of {sizes}")
        return found
