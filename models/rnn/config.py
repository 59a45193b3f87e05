"""Settings of the Elman RNN."""

from dataclasses import dataclass

from orch.models.config import ModelConfig, Shape, Vocabulary, rnn_flops, rnn_shapes
from orch.models.look import DASHED, Look


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(ModelConfig):
    name = "rnn"
    revision = 2
    packs = True
    about = "h' = tanh(W x + U h + b), torch.nn.RNN's parameters"
    title = "RNN"
    looks = {"": Look("#E69F00", "X", DASHED, filled=False)}

    def shapes(self, vocabulary: Vocabulary) -> dict[str, Shape]:
        return rnn_shapes(self.width, 1, vocabulary)

    def forward_flops(self, vocabulary: Vocabulary, num_samples: int, num_tokens: int) -> int:
        return rnn_flops(self.width, 1, vocabulary, num_samples, num_tokens)
