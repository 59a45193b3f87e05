"""Settings and facts that recurrent networks in torch.nn's layout share. No torch."""

from dataclasses import dataclass
from typing import ClassVar

from orch.models.config import ModelConfig, Shape, Vocabulary
from orch.models.kernel import PLAIN


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenRNNConfig(ModelConfig):
    """A recurrence in torch.nn's layout (two biases, no learned h_0) between an embedding and a head."""

    packs = True
    holds_positions = False
    num_gates: ClassVar[int]

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        H, G = self.width, self.num_gates * self.width
        return {
            "embedding": (vocabulary.size, H),
            "recurrence.weight_ih": (G, H),
            "recurrence.weight_hh": (G, H),
            "recurrence.bias_ih": (G,),
            "recurrence.bias_hh": (G,),
            "head.weight": (vocabulary.size, H),
            "head.bias": (vocabulary.size,),
        }

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        H, G = self.width, self.num_gates * self.width
        per_token_table, recurrence = 2 * vocabulary.readable * G * H, 2 * num_samples * num_tokens * G * H
        return per_token_table + recurrence + 2 * num_samples * H * vocabulary.size

    def num_entries(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str) -> float:
        return num_samples * num_tokens * self.width * (self.num_gates + (0.3 if kernel == PLAIN else 1))

    def moved_numbers(
        self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, kernel: str, training: bool
    ) -> float:
        if kernel == PLAIN:
            per_position = 7.5 + 41 * self.num_gates if training else 1 + 10.7 * self.num_gates
        else:
            per_position = 6 + 17 * self.num_gates if training else 0.4 + 4.8 * self.num_gates
        return num_samples * num_tokens * self.width * per_position

    def working_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        num_positions = num_samples * num_tokens
        numbers = (
            (2 * self.num_gates + 4) * num_positions * self.width
            if training
            else (4 * self.num_gates + 4) * num_samples * self.width
        )
        return numbers + 4 * self.num_gates * self.width**2 + self._index_memory(vocabulary, num_positions)

    def gpu_kernel_memory(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int, training: bool) -> int:
        # Training keeps the gates, where their gradients take the same place, and two states at every position.
        num_positions = num_samples * num_tokens
        kept = (self.num_gates + 2) * self.width * (num_positions if training else num_samples)
        passing = 6 * num_samples + 4 * vocabulary.readable * self.num_gates
        return kept + passing * self.width + self._index_memory(vocabulary, num_positions)
