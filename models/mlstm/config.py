"""Settings of the mLSTM."""

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
    name = "mlstm"
    revision = 1
    packs_across_cells = True
    about = "xLSTM's matrix memory: exponential gates, no recurrent weights"
    title = "mLSTM"
    variant_titles = {"1": "mLSTM (1 layer)", "": "mLSTM ({} layers)"}
    looks = {"": Look("#A6761D", "p")}
    arrays_kept, arrays_evaluated, arrays_moved = 60, 25, (365, 595)
    launches = {PLAIN: Launches(66, per_layer=218)}

    # Its block projects up before the recurrence and has no perceptron after it.
    mlp: float = setting(0.0, "hidden units of a block's gated perceptron as a multiple of the width; 0 leaves it out")
    expansion: int = setting(2, "inner width as a multiple of the width")
    heads: int = setting(4, "independent memories, among which the inner width is divided")
    kernel_size: int = setting(4, "width of the causal convolution")

    @property
    def inner(self) -> int:
        """Number of inner channels, which the heads divide among themselves."""
        return self.expansion * self.width

    @property
    def transitions(self) -> Transitions:
        # A forget gate between 0 and 1 for each head: Beck et al. (2024) name the lack of memory mixing as its limit.
        return Transitions(Family.POSITIVE_DIAGONAL, self.layers)

    def mixer_shapes(self) -> dict[str, Shape]:
        H, I, a = self.width, self.inner, self.heads  # noqa: E741
        return {
            "up": (I, H),
            "convolution": (I, 1, self.kernel_size),
            "convolution_bias": (I,),
            "query": (I, I),
            "key": (I, I),
            "value": (I, I),
            "gates": (2 * a, I),
            "gates_bias": (2 * a,),
            "output_norm": (I,),
            "skip": (I,),
            "output_gate": (I, H),
            "output": (H, I),
        }

    def mixing_flops(self, num_tokens: int) -> int:
        return 2 * self.inner * (2 * min(num_tokens, 64) + self.kernel_size)

    def problems(self) -> list[str]:
        found = ResidualConfig.problems(self)
        for field in ("expansion", "kernel_size"):
            if getattr(self, field) < 1:
                found.append(f"{field} {getattr(self, field)} is no model: use 1 or more")
        if self.heads < 1 or self.inner % self.heads:
            found.append(f"inner width {self.inner} cannot be divided among {self.heads} heads: change heads or width")
        return found
