"""Elman RNN: Elman (1990), with torch.nn.RNN's parameters.

h' = tanh(W x + U h + b)
"""

from torch import Tensor

from orch.models.recurrence import elman_scan
from orch.models.token_rnn.network import TokenRNN


class Network(TokenRNN):
    def scan(self, input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor, read_KBP: Tensor | None) -> Tensor:
        return elman_scan(input_KRG, hidden_KGH, tokens_KBT, read_KBP)

    def gpu_scan(self, input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor) -> Tensor:
        from orch.models.gpu_kernels.gates import elman_scan as gpu_scan

        return gpu_scan(input_KRG, hidden_KGH, tokens_KBT)
