"""Factored bilinear RNN: the transition tensor as a sum of R rank-one terms (CP decomposition; Sec. 2.2.1).

A_x = W^(h1) diag((W^(x))^T x) (W^(h2))^T          `out` is W^(h1), `gate` is W^(x), `into` is W^(h2)
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from orch.models.network import BilinearFamily
from orch.models.recurrence import Normalisation, factored_scan

if TYPE_CHECKING:
    from orch.models.compiled.transitions import CompiledScan


class Network(BilinearFamily):
    def scan(
        self, x_KRD: Tensor, tokens_KBT: Tensor, normalisation: Normalisation, additive_KRH: Tensor | None
    ) -> Tensor:
        gate_KRF = self.vocabularies.by_token(torch.bmm, x_KRD, self["recurrence.gate"])
        out, into = self["recurrence.out"], self["recurrence.into"]
        return factored_scan(out, gate_KRF, into, tokens_KBT, self["initial_state"], normalisation, additive_KRH)

    def compiled_scan(self, x_KRD: Tensor, tokens_KBT: Tensor, *options: Any) -> "CompiledScan":
        from orch.models.compiled.factors import factored_scan as compiled_scan

        gate, out, into = self["recurrence.gate"], self["recurrence.out"], self["recurrence.into"]
        return compiled_scan(out, gate, into, x_KRD, self.vocabularies, tokens_KBT, *options)
