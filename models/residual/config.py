"""Settings of networks of residual blocks. No torch."""

from dataclasses import dataclass
from typing import ClassVar

from orch.core.settings import setting
from orch.models.config import LayeredConfig, Shape, Vocabulary

TABLE_ROWS = 32
"""Tables of tokens are padded to a multiple of so many rows: as many as a CPU computes a function of at once."""


def table_choices(vocabulary: Vocabulary) -> tuple[bool, ...]:
    """Return the size of a padded table, as a choice between products that round differently."""
    return (True,) * -(-vocabulary.size // TABLE_ROWS)


@dataclass(frozen=True, kw_only=True, slots=True)
class ResidualConfig(LayeredConfig):
    """Blocks of a mixer and a gated perceptron, each after a norm and added to its input.

    A subclass says what its mixer's parameters are and what it costs; its network defines how positions are mixed.
    """

    packs = True
    family = "Linear recurrences"
    small_settings = {"layers": 2}
    arrays_kept: ClassVar[int] = 16
    """Numbers, as multiples of the width, that the backward pass of a block's mixer keeps for a position."""
    arrays_evaluated: ClassVar[int]
    """Numbers, as multiples of the width, that an evaluation holds at once for a position."""
    arrays_moved: ClassVar[tuple[int, int]]
    """Numbers, as multiples of the width, that a training step on a GPU reads and writes for a position: in the last
    block, and in each of the others. Counted on tensors without data, like `launches`."""

    mlp: float = setting(2.0, "hidden units of a block's gated perceptron as a multiple of the width; 0 leaves it out")

    @property
    def hidden(self) -> int:
        """Hidden units of a block's perceptron."""
        return round(self.mlp * self.width)

    def mixer_shapes(self) -> dict[str, Shape]:
        """Shape of every parameter of a block's mixer, by name. The last axis of a matrix is its input."""
        raise NotImplementedError

    def mixing_flops(self, num_tokens: int) -> int:
        """Operations of a mixer for one position of a sequence, beside the products with its matrices."""
        raise NotImplementedError

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        H, M = self.width, self.hidden
        block: dict[str, Shape] = {"mixer.norm": (H,)}
        block |= {f"mixer.{name}": shape for name, shape in self.mixer_shapes().items()}
        if M:
            block |= {"mlp.norm": (H,), "mlp.gate": (M, H), "mlp.up": (M, H), "mlp.down": (H, M)}
        shapes: dict[str, Shape] = {"embedding": (vocabulary.size, H)}
        shapes |= {f"blocks.{layer}.{name}": shape for layer in range(self.layers) for name, shape in block.items()}
        return shapes | {"norm": (H,), "head.weight": (vocabulary.size, H), "head.bias": (vocabulary.size,)}

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        matrices = sum(shape[0] * shape[1] for shape in self.mixer_shapes().values() if len(shape) == 2)
        mixers = self.layers * (2 * matrices + self.mixing_flops(num_tokens))
        mlp = 2 * 3 * self.width * self.hidden
        # The perceptron of the last block is computed only at [EOI].
        positions = num_samples * num_tokens
        return positions * (mixers + (self.layers - 1) * mlp) + num_samples * (mlp + 2 * self.width * vocabulary.size)

    def reading_flops(self, vocabulary: Vocabulary) -> int:
        """Number of operations to answer at one more place: the last block's output and perceptron, and the head."""
        return 2 * self.width * (self.width + 3 * self.hidden + vocabulary.size)

    def reading_entries(self, vocabulary: Vocabulary) -> int:
        return 16 * self.width + 6 * self.hidden + 6 * vocabulary.size

    def choices(self, vocabulary: Vocabulary, num_positions: int) -> tuple[bool, ...]:
        return table_choices(vocabulary)

    def sequential_positions(self, num_tokens: int) -> int:
        return 2 * self.layers

    def num_entries(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str) -> float:
        return num_samples * num_tokens * self.width * 12 * self.layers

    def moved_numbers(
        self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str, training: bool
    ) -> float:
        last, other = self.arrays_moved
        moved = num_samples * num_tokens * self.width * (last + other * (self.layers - 1))
        return moved if training else 0.3 * moved

    def working_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        num_positions = num_samples * num_tokens
        numbers = self.arrays_evaluated * self.width
        if training:
            numbers = self.layers * (self.arrays_kept * self.width + 4 * self.hidden) + 4 * self.width
        return num_positions * numbers + self._index_memory(vocabulary, num_positions)

    def problems(self) -> list[str]:
        found = LayeredConfig.problems(self)
        if not self.mlp >= 0:
            found.append(f"mlp {self.mlp} is no size: use 0 or a positive number, such as 2")
        return found
