"""Settings of DeltaNet, and of the models that extend it."""

from dataclasses import dataclass

from orch.core.settings import setting
from orch.models.config import Shape, Vocabulary
from orch.models.kernel import COMPILED, COMPILED_2, PLAIN
from orch.models.look import DASHED, Look
from orch.models.residual.config import ResidualConfig
from orch.models.step_costs import Launches
from orch.tasks.algebra import Family, Transitions

COMPILED_LAUNCHES = Launches(20, per_layer=15)
"""Launches of a step that is all machine code, whatever the number of trials: calls, and arrays made for them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeltaConfig(ResidualConfig):
    """The settings that the models of the delta rule have in common."""

    compiled_kernel = COMPILED_2  # of `compiled`, only the recurrence is machine code

    heads: int = setting(4, "independent states, among which the width is divided")
    kernel_size: int = setting(4, "width of the causal convolution; 0 leaves it out")
    negative_eigenvalues: bool = setting(False, "let transitions have eigenvalues in [-1, 1] instead of [0, 1]")

    @property
    def num_writes(self) -> int:
        """Number of times that a token writes to the state."""
        return 1

    @property
    def is_gated(self) -> bool:
        """Whether the state decays."""
        return False

    @property
    def largest_beta(self) -> float:
        """Upper bound of β. A transition has the eigenvalue 1 - β."""
        return 2.0 if self.negative_eigenvalues else 1.0

    @property
    def table_variant(self) -> str:
        return "negative" if self.negative_eigenvalues else ""

    @property
    def summary(self) -> str:
        layers = f"{self.layers} layer{'s' * (self.layers != 1)}"
        return f"{layers}, eigenvalues in [{'-1' if self.negative_eigenvalues else '0'}, 1]"

    @property
    def transitions(self) -> Transitions:
        if self.negative_eigenvalues:
            return Transitions(Family.REFLECTIONS, self.layers, self.num_writes)
        return Transitions(Family.POSITIVE_REFLECTIONS, self.layers)

    def mixer_shapes(self) -> dict[str, Shape]:
        H, G = self.width, (1 + 2 * self.num_writes) * self.width
        shapes: dict[str, Shape] = {"projection": (G, H)}
        if self.kernel_size:
            shapes["convolution"] = (G, 1, self.kernel_size)
        shapes["beta"] = (self.num_writes * self.heads, H)
        if self.is_gated:
            shapes |= {"decay": (self.heads, H), "decay_bias": (self.heads,), "decay_rate": (self.heads,)}
            shapes["output_gate"] = (H, H)
        return shapes | {"output_norm": (H // self.heads,), "output": (H, H)}

    def mixing_flops(self, num_tokens: int) -> int:
        writes = self.num_writes * num_tokens
        return 2 * self.width * (3 * min(writes, 64) + self.kernel_size * (1 + 2 * self.num_writes))

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        shapes = self.mixer_shapes()
        sizes = {name: 2 * shape[0] * shape[1] for name, shape in shapes.items() if len(shape) == 2}
        leave = sizes.pop("output") + sizes.pop("output_gate", 0) + 2 * 3 * self.width * self.hidden
        enter = sum(sizes.values())
        # The first block enters once per token of the vocabulary, and the last one leaves only at [EOI].
        position = self.layers * self.mixing_flops(num_tokens) + (self.layers - 1) * (enter + leave)
        ends = num_samples * (leave + 2 * self.width * vocabulary.size)
        return num_samples * num_tokens * position + vocabulary.size * enter + ends

    def num_entries(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str) -> float:
        if kernel == PLAIN:
            return ResidualConfig.num_entries(self, vocabulary, num_samples, num_tokens, kernel)
        # The recurrence goes through short vectors, which takes longer than its operations say.
        return num_samples * num_tokens * self.width * 4 * (1 + 2 * self.num_writes) * self.layers

    def problems(self) -> list[str]:
        found = ResidualConfig.problems(self)
        if self.heads < 1 or self.width % self.heads:
            found.append(f"width {self.width} cannot be divided among {self.heads} heads: change heads or width")
        if self.kernel_size < 0:
            found.append(f"kernel_size {self.kernel_size} is no width: use 0 or more")
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(DeltaConfig):
    name = "delta_net"
    revision = 1
    packs_across_cells = True
    compiled_from = 1
    places_kernel = COMPILED
    about = "delta rule: one generalised Householder reflection a token"
    title = "DeltaNet"
    variant_titles = {"negative": "DeltaNet [-1, 1]"}
    looks = {"negative": Look("#7B3294", "D"), "": Look("#B98CC9", "D", DASHED, filled=False)}
    arrays_kept, arrays_evaluated, arrays_moved = 16, 15, (341, 557)
    launches = {PLAIN: Launches(66, per_layer=221), COMPILED: COMPILED_LAUNCHES}
