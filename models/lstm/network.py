"""LSTM: Hochreiter and Schmidhuber (1997), with torch.nn.LSTM's parameters.

i, f, o = sigmoid(W x + U h + b), g = tanh(W x + U h + b);   c' = f c + i g;   h' = o tanh(c')
"""

from torch import Tensor

from orch.models.recurrence import lstm_scan
from orch.models.token_rnn.network import TokenRNN


class Network(TokenRNN):
    def scan(self, input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor, read_KBP: Tensor | None) -> Tensor:
        return lstm_scan(input_KRG, hidden_KGH, tokens_KBT, read_KBP)

    def gpu_scan(self, input_KRG: Tensor, hidden_KGH: Tensor, tokens_KBT: Tensor) -> Tensor:
        from orch.models.gpu_kernels.gates import lstm_scan as gpu_scan

        return gpu_scan(input_KRG, hidden_KGH, tokens_KBT)
