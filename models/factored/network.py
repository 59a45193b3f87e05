"""Factored bilinear RNN: the transition tensor as a sum of R rank-one terms (CP decomposition; Sec. 2.2.1).

A_x = W^(h1) diag((W^(x))^T x) (W^(h2))^T          `out` is W^(h1), `gate` is W^(x), `into` is W^(h2)
"""

import torch
from torch import Tensor

from orch.models.network import BilinearFamily
from orch.models.recurrence import Normalisation, factored_scan


class Network(BilinearFamily):
    def scan(
        self, x_KRD: Tensor, tokens_KBT: Tensor, normalisation: Normalisation, additive_KRH: Tensor | None
    ) -> Tensor:
        gate_KRF = torch.bmm(x_KRD, self["recurrence.gate"])
        out, into = self["recurrence.out"], self["recurrence.into"]
        return factored_scan(out, gate_KRF, into, tokens_KBT, self["initial_state"], normalisation, additive_KRH)
