"""LSTM: Hochreiter and Schmidhuber (1997), with torch.nn.LSTM's parameters.

i, f, o = sigmoid(W x + U h + b), g = tanh(W x + U h + b);   c' = f c + i g;   h' = o tanh(c')
"""

from torch import Tensor

from orch.models.kernel import TRITON
from orch.models.network import TokenRNN
from orch.models.recurrence import lstm_scan


class Network(TokenRNN):
    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        if self.answers_compiled:
            return self.head(self.compiled_scan(tokens_KBT).forward(keep=False))
        scan = lstm_scan
        if self.kernel == TRITON:
            from orch.models.gpu_kernels.gates import lstm_scan as scan
        return self.head(scan(self.input_table(), self["recurrence.weight_hh"], tokens_KBT))
