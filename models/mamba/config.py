"""Settings of Mamba: those of Mamba-130M wherever the paper names none."""

from dataclasses import dataclass

from orch.core.settings import setting
from orch.models.config import LayeredConfig, Shape, Vocabulary
from orch.models.kernel import COMPILED, COMPILED_2, PLAIN, TRITON
from orch.models.look import DASHED, DOTTED, Look
from orch.models.step_costs import Launches
from orch.tasks.algebra import Family, Transitions

MAMBA_SSM = "mamba_ssm"
"""Name of the kernel that the CUDA packages of Mamba's authors provide."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(LayeredConfig):
    name = "mamba"
    revision = 1
    packs_across_cells = True
    about = "selective state space: positive diagonal transitions"
    title = "Mamba"
    variant_titles = {"1": "Mamba (1 layer)", "negative": "Mamba [-1, 1]", "": "Mamba ({} layers)"}
    looks = {
        "negative": Look("#0B3C5D", "h", DASHED),
        "1": Look("#8CCBEF", "h", DOTTED, filled=False),
        "2": Look("#56B4E9", "h", DASHED, filled=False),
        "": Look("#2383B8", "h"),
    }
    packs = True
    compiled_from = 1
    compiled_kernel = COMPILED_2
    places_kernel = COMPILED  # of which only the scan is machine code
    gpu_kernels = True
    small_settings = {"layers": 2}
    own_learning_rates = {"laptop": (1e-3,)}
    launches = {
        PLAIN: Launches(60, per_layer=146, per_position=10),
        COMPILED: Launches(20, per_layer=40, for_each_trial=True),
        TRITON: Launches(36, per_layer=26),
    }

    expansion: int = setting(2, "inner width as a multiple of the width")
    state_size: int = setting(16, "states per inner channel")
    kernel_size: int = setting(4, "width of the causal convolution")
    # Mamba-130M's own value, kept at every width: the published parameter counts say so.
    time_step_rank: int = setting(48, "rank of the time step's projection")

    negative_eigenvalues: bool = setting(
        False, "let transitions have eigenvalues in [-1, 1] instead of [0, 1]", past=False
    )

    @property
    def table_variant(self) -> str:
        return "negative" if self.negative_eigenvalues else str(self.layers)

    @property
    def summary(self) -> str:
        layers = f"{self.layers} layer{'s' * (self.layers != 1)}"
        return f"{layers}, eigenvalues in [-1, 1]" if self.negative_eigenvalues else layers

    @property
    def transitions(self) -> Transitions:
        family = Family.SIGNED_DIAGONAL if self.negative_eigenvalues else Family.POSITIVE_DIAGONAL
        return Transitions(family, self.layers)

    @property
    def has_compiled(self) -> bool:
        return not self.negative_eigenvalues and vars(type(self)).get("compiled_from") is not None

    @property
    def has_gpu_kernels(self) -> bool:
        return not self.negative_eigenvalues and bool(vars(type(self)).get("gpu_kernels"))

    def plain_kernel(self, device: str) -> str:
        if device.startswith("cpu") or self.negative_eigenvalues:
            return PLAIN
        from orch.models.mamba.scan import kernel

        return kernel(device)

    @property
    def inner(self) -> int:
        """Number of inner channels."""
        return self.expansion * self.width

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        H, I, N, rank = self.width, self.inner, self.state_size, self.time_step_rank  # noqa: E741
        shapes: dict[str, Shape] = {"backbone.embeddings.weight": (vocabulary.size, H)}
        for layer in range(self.layers):
            block = {
                "norm.weight": (H,),
                "mixer.A_log": (I, N),
                "mixer.D": (I,),
                "mixer.conv1d.weight": (I, 1, self.kernel_size),
                "mixer.conv1d.bias": (I,),
                "mixer.in_proj.weight": (2 * I, H),
                "mixer.x_proj.weight": (rank + 2 * N, I),
                "mixer.dt_proj.weight": (I, rank),
                "mixer.dt_proj.bias": (I,),
                "mixer.out_proj.weight": (H, I),
            }
            shapes |= {f"backbone.layers.{layer}.{name}": shape for name, shape in block.items()}
        return shapes | {"backbone.norm_f.weight": (H,)}

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        H, I, N, rank = self.width, self.inner, self.state_size, self.time_step_rank  # noqa: E741
        mixing = I * (rank + 2 * N) + rank * I + I * self.kernel_size + 4 * I * N
        # The first layer enters once per token. The last one has its gate and its output only at [EOI], and so has the
        # head.
        enter, leave = H * I, 2 * I * H
        num_positions = num_samples * num_tokens
        at_positions = 2 * num_positions * (self.layers * mixing + (self.layers - 1) * (enter + leave))
        return at_positions + 2 * vocabulary.size * enter + 2 * num_samples * (leave + H * vocabulary.size)

    def reading_flops(self, vocabulary: Vocabulary) -> int:
        """Number of operations to answer at one more place: the gate and the output of the last block, and the head."""
        return 2 * self.width * (2 * self.inner + vocabulary.size)

    def reading_entries(self, vocabulary: Vocabulary) -> int:
        return 12 * self.inner + 6 * vocabulary.size

    def sequential_positions(self, num_tokens: int) -> int:
        return num_tokens * self.layers

    def num_entries(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str) -> float:
        # Compiled kernels write few states: a channel's stay in the cache.
        written = (1.3 * self.state_size + 4) * (1 if kernel == PLAIN else 0.15)
        return num_samples * num_tokens * self.layers * self.inner * written

    def moved_numbers(
        self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str, training: bool
    ) -> float:
        # Plain kernels move all states; others keep them, and move what goes in and comes out.
        states = self.state_size if kernel == PLAIN else 1.4
        return num_samples * num_tokens * self.layers * self.inner * states * (43 if training else 11)

    def working_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        num_positions = num_samples * num_tokens
        indices = self._index_memory(vocabulary, num_positions)
        if training:
            # The backward pass holds three arrays of all states, of one layer at a time.
            return num_positions * self.inner * (14 * self.layers + 3 * self.state_size) + indices
        per_position = 6 if self.layers == 1 else 9
        return self.inner * (per_position * num_positions + 2 * num_samples * self.state_size) + indices

    def gpu_kernel_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        num_positions = num_samples * num_tokens
        other = 2 * self.width + self.time_step_rank + 2 * self.state_size
        numbers = num_positions * ((4 if self.layers == 1 and not training else 7) * self.inner + other)
        if training:
            # A quarter of the states is kept. The backward pass holds the gradients of one layer at a time, and those
            # of its weights for each sample.
            states = self.state_size * num_samples * -(-num_tokens // 4)
            parts = num_samples * (self.state_size + self.kernel_size + 3)
            numbers = self.layers * (numbers + self.inner * states) + self.inner * (8 * num_positions + parts)
        return numbers + self._index_memory(vocabulary, num_positions)

    def problems(self) -> list[str]:
        found = LayeredConfig.problems(self)
        for field in ("expansion", "state_size", "kernel_size", "time_step_rank"):
            if getattr(self, field) < 1:
                found.append(f"{field} {getattr(self, field)} is no model: use 1 or more")
        return found
