"""Settings of the block-diagonal bilinear model. Block size 1 is the real diagonal."""

from dataclasses import dataclass

from orch.core.settings import setting
from orch.models.config import BilinearFamilyConfig, Shape
from orch.models.look import DASH_DOT, DASHED, DOTTED, Look


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(BilinearFamilyConfig):
    name = "block_diagonal"
    revision = 3
    packs_across_cells = True
    compiled_from = 1
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

    block_size: int = setting(8, "size of the diagonal blocks; 1 is the real diagonal")

    @property
    def table_variant(self) -> str:
        return str(self.block_size)

    @property
    def summary(self) -> str:
        return f"block size {self.block_size}"

    @property
    def state_block(self) -> int:
        return self.block_size

    def recurrence_shapes(self) -> dict[str, Shape]:
        return {"transition": (self.block_size, self.block_size, self.width // self.block_size, self.width)}

    def recurrence_flops(self, readable: int, num_positions: int) -> int:
        return 2 * self.width * self.block_size * (readable * self.width + num_positions)

    def problems(self) -> list[str]:
        found = BilinearFamilyConfig.problems(self)
        if self.width > 0 and (self.block_size < 1 or self.width % self.block_size):
            sizes = ", ".join(str(size) for size in range(1, self.width + 1) if self.width % size == 0)
            found.append(f"block_size {self.block_size} does not divide width {self.width}: use one of {sizes}")
        return found
