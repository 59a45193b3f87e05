"""Factored bilinear RNN: the transition tensor as a sum of R rank-one terms (CP decomposition; Sec. 2.2.1).

A_x = W^(h1) diag((W^(x))^T x) (W^(h2))^T          `out` is W^(h1), `gate` is W^(x), `into` is W^(h2)
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from orch.models.bilinear_family.network import BilinearFamily
from orch.models.recurrence import Normalisation, factored_scan

if TYPE_CHECKING:
    from orch.models.compiled.transitions import CompiledScan


class Network(BilinearFamily):
    def scan(
        self,
        x_KRD: Tensor,
        tokens_KBT: Tensor,
        normalisation: Normalisation,
        additive_KRH: Tensor | None,
        read_KBP: Tensor | None = None,
    ) -> Tensor:
        gate_KRF = self.vocabularies.by_token(torch.bmm, x_KRD, self["recurrence.gate"])
        factors = self["recurrence.out"], gate_KRF, self["recurrence.into"]
        return factored_scan(*factors, tokens_KBT, self["initial_state"], normalisation, additive_KRH, read_KBP)

    def gpu_scan(
        self,
        x_KRD: Tensor,
        tokens_KBT: Tensor,
        normalisation: Normalisation,
        every_step: bool,
        additive_KRH: Tensor | None,
    ) -> Tensor:
        from orch.models.gpu_kernels.factors import factored_scan as gpu_scan

        each = normalisation if every_step else replace(normalisation, kind="none")
        out, into, h0_KH = self["recurrence.out"], self["recurrence.into"], self["initial_state"]
        gate_KRF = torch.bmm(x_KRD, self["recurrence.gate"])
        h_KBH = gpu_scan(out, gate_KRF, into, tokens_KBT, h0_KH, each, additive_KRH)
        return h_KBH if every_step else normalisation(h_KBH)

    def compiled_scan(self, x_KRD: Tensor, tokens_KBT: Tensor, *options: Any) -> "CompiledScan":
        from orch.models.compiled.factors import factored_scan as compiled_scan

        gate, out, into = self["recurrence.gate"], self["recurrence.out"], self["recurrence.into"]
        return compiled_scan(out, gate, into, x_KRD, self.vocabularies, tokens_KBT, *options)
