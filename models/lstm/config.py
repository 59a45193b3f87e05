"""Settings of the LSTM."""

from dataclasses import dataclass

from orch.models.config import ModelConfig, Shape, Vocabulary, rnn_flops, rnn_shapes
from orch.models.look import Look


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(ModelConfig):
    name = "lstm"
    revision = 2
    packs = True
    about = "gated recurrence, torch.nn.LSTM's parameters"
    title = "LSTM"
    looks = {"": Look("#CC79A7", "P")}

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        return rnn_shapes(self.width, 4, vocabulary)

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        return rnn_flops(self.width, 4, vocabulary, num_samples, num_tokens)
