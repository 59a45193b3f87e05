"""Settings of the RNN with multiplicative integration."""

from dataclasses import dataclass

from orch.models.config import ModelConfig, Shape, Vocabulary
from orch.models.kernel import PLAIN
from orch.models.look import DASHED, Look
from orch.models.residual.config import table_choices
from orch.models.step_costs import Launches
from orch.tasks.algebra import Family, Transitions


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(ModelConfig):
    name = "mi_rnn"
    revision = 1
    packs_across_cells = True
    about = "h' = tanh(α W x U h + β₁ U h + β₂ W x + b): multiplicative integration"
    title = "MI-RNN"
    looks = {"": Look("#E6AB02", "X", DASHED)}
    packs = True
    launches = {PLAIN: Launches(90, per_position=9)}

    @property
    def transitions(self) -> Transitions:
        return Transitions(Family.NONLINEAR)

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        H, V = self.width, vocabulary.size
        return {
            "embedding": (V, H),
            "input": (H, H),
            "recurrent": (H, H),
            "product_scale": (H,),
            "recurrent_scale": (H,),
            "input_scale": (H,),
            "bias": (H,),
            "head.weight": (V, H),
            "head.bias": (V,),
        }

    def choices(self, vocabulary: Vocabulary, num_positions: int) -> tuple[bool, ...]:
        return table_choices(vocabulary)

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        H = self.width
        positions = num_samples * num_tokens
        return 2 * H * H * (vocabulary.readable + positions) + 4 * positions * H + 2 * num_samples * H * vocabulary.size

    def working_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        num_positions = num_samples * num_tokens
        return (12 if training else 5) * num_positions * self.width + self._index_memory(vocabulary, num_positions)
