"""LSTM: Hochreiter and Schmidhuber (1997), with torch.nn.LSTM's parameters.

i, f, o = sigmoid(W x + U h + b), g = tanh(W x + U h + b);   c' = f c + i g;   h' = o tanh(c')
"""

from torch import Tensor

from orch.models.kernel import TRITON
from orch.models.places import several_places
from orch.models.recurrence import lstm_scan
from orch.models.token_rnn.network import TokenRNN


class Network(TokenRNN):
    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        read_KBP = several_places(end_KB)
        if self.answers_compiled and read_KBP is None:
            return self.head(self.compiled_scan(tokens_KBT).forward(keep=False))
        scanned = self.input_table(), self["recurrence.weight_hh"], tokens_KBT
        if self.kernel == TRITON and read_KBP is None:
            from orch.models.gpu_kernels.gates import lstm_scan as gpu_scan

            return self.head(gpu_scan(*scanned))
        return self.head(lstm_scan(*scanned, read_KBP))
