"""Settings of the transformer: GPT-2 with no dropout and tied embeddings."""

from dataclasses import dataclass, replace

from orch.core.settings import setting
from orch.models.config import LayeredConfig, Shape, Vocabulary
from orch.models.kernel import PLAIN
from orch.models.look import DASHED, DOTTED, Look
from orch.models.step_costs import Launches
from orch.tasks.algebra import Family, Transitions


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(LayeredConfig):
    name = "transformer"
    revision = 2
    packs_across_cells = True
    about = "GPT-2 without dropout"
    title = "Transformer"
    variant_titles = {"1": "Transformer (1 layer)", "": "Transformer ({} layers)"}
    looks = {
        "1": Look("#A6A6A6", "*", DOTTED, filled=False),
        "2": Look("#808080", "*", DASHED, filled=False),
        "": Look("#595959", "*"),
    }
    packs = True
    small_settings = {"layers": 2, "heads": 2}
    own_learning_rates = {"laptop": (3e-4,), "atlas": (1e-3,)}
    launches = {PLAIN: Launches(60, per_layer=67)}

    # The paper names no number at width 256; 4 keeps GPT-2's head size of 64.
    heads: int = setting(4, "number of attention heads")
    positions: int = setting(1024, "longest sequence in tokens")

    @property
    def max_tokens(self) -> int:
        return self.positions

    @property
    def transitions(self) -> Transitions:
        return Transitions(Family.BOUNDED_DEPTH, self.layers)

    def able_to_read(self, num_tokens: int) -> "Config":
        return replace(self, positions=max(self.positions, num_tokens))

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        H = self.width
        shapes: dict[str, Shape] = {
            "transformer.wte.weight": (vocabulary.size, H),
            "transformer.wpe.weight": (self.positions, H),
        }
        for layer in range(self.layers):
            block = {
                "ln_1.weight": (H,),
                "ln_1.bias": (H,),
                "attn.c_attn.weight": (H, 3 * H),
                "attn.c_attn.bias": (3 * H,),
                "attn.c_proj.weight": (H, H),
                "attn.c_proj.bias": (H,),
                "ln_2.weight": (H,),
                "ln_2.bias": (H,),
                "mlp.c_fc.weight": (H, 4 * H),
                "mlp.c_fc.bias": (4 * H,),
                "mlp.c_proj.weight": (4 * H, H),
                "mlp.c_proj.bias": (H,),
            }
            shapes |= {f"transformer.h.{layer}.{name}": shape for name, shape in block.items()}
        return shapes | {"transformer.ln_f.weight": (H,), "transformer.ln_f.bias": (H,)}

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        H, positions = self.width, num_samples * num_tokens
        block = 2 * positions * 12 * H * H + 4 * positions * num_tokens * H
        # The last block has keys and values at every position, and all else only at [EOI].
        last = 2 * positions * 2 * H * H + 2 * num_samples * 10 * H * H + 4 * positions * H
        return (self.layers - 1) * block + last + 2 * num_samples * H * vocabulary.size

    def reading_flops(self, vocabulary: Vocabulary) -> int:
        """Number of operations to answer at one more place: the products of the last block, and the head."""
        return 2 * self.width * (10 * self.width + vocabulary.size)

    def reading_entries(self, vocabulary: Vocabulary) -> int:
        return 24 * self.width + 6 * vocabulary.size

    def sequential_positions(self, num_tokens: int) -> int:
        return 0

    def num_entries(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str) -> float:
        return num_samples * num_tokens * self.width * (18 * self.layers - 12)

    def moved_numbers(
        self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str, training: bool
    ) -> float:
        in_layer, in_last = (170, 82) if training else (55, 23)
        return num_samples * num_tokens * self.width * (in_layer * (self.layers - 1) + in_last)

    def working_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        num_positions = num_samples * num_tokens
        per_position = 12 + 20 * (self.layers - 1) if training else 7 if self.layers == 1 else 12
        return per_position * num_positions * self.width + self._index_memory(vocabulary, num_positions)

    def problems(self) -> list[str]:
        found = LayeredConfig.problems(self)
        if self.width > 0 and (self.heads < 1 or self.width % self.heads):
            sizes = ", ".join(str(heads) for heads in range(1, self.width + 1) if self.width % heads == 0)
            found.append(f"heads {self.heads} does not divide width {self.width}: use one of {sizes}")
        return found
