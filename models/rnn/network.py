"""Elman RNN: Elman (1990), with torch.nn.RNN's parameters.

h' = tanh(W x + U h + b)
"""

from torch import Tensor

from orch.models.kernel import TRITON
from orch.models.network import TokenRNN
from orch.models.recurrence import elman_scan


class Network(TokenRNN):
    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        if self.answers_compiled:
            return self.head(self.compiled_scan(tokens_KBT).forward(keep=False))
        scan = elman_scan
        if self.kernel == TRITON:
            from orch.models.gpu_kernels.gates import elman_scan as scan
        return self.head(scan(self.input_table(), self["recurrence.weight_hh"], tokens_KBT))
