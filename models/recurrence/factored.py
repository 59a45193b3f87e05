"""Factored transitions: h' = W1 diag(d(x)) W2^T h, with one vector d per token."""

import torch
from torch import Tensor

from models.recurrence.blocks import block_scan
from models.recurrence.normalisation import Normalisation
from models.recurrence.scan import one_hot, scan, table_rows


def factored_scan(
    out_KHF: Tensor,
    gate_KRF: Tensor,
    into_KHF: Tensor,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    normalisation: Normalisation,
    additive_KRH: Tensor | None = None,
) -> Tensor:
    """Final states, by whichever order of multiplication is cheaper: through the factors at every position, or with
    one H x H transition per token multiplied out beforehand (long sequences, many samples, many factors)."""
    (_, B, T), (_, R, F), H = tokens_KBT.shape, gate_KRF.shape, out_KHF.shape[1]
    if R * H * F + B * T * H < 2 * B * T * F:
        table_KRHH = (out_KHF[:, None] * gate_KRF[:, :, None]) @ into_KHF[:, None].transpose(2, 3)
        return block_scan(table_KRHH[..., None], tokens_KBT, h0_KH, normalisation, additive_KRH)
    return scan(FactoredTransition, normalisation, tokens_KBT, h0_KH, additive_KRH, out_KHF, gate_KRF, into_KHF)


class FactoredTransition:
    """Two matmuls per position, the same for every token, with the token's gates in between."""

    def __init__(self, tokens_KBT: Tensor, out_KHF: Tensor, gate_KRF: Tensor, into_KHF: Tensor):
        K, R, F = gate_KRF.shape
        self._tokens_KBT, self._R = tokens_KBT, R
        self._out_KHF, self._into_KHF = out_KHF, into_KHF
        self._gates = torch.nn.functional.pad(gate_KRF, (0, 0, 0, 1)).reshape(K * (R + 1), F)
        self._rows_KTB = table_rows(tokens_KBT, R + 1)
        self._keep_KTB1 = (tokens_KBT == R).transpose(1, 2).unsqueeze(-1)

    def _gate(self, t: int) -> Tensor:
        rows_KB = self._rows_KTB[:, t]
        return self._gates.index_select(0, rows_KB.flatten()).view(*rows_KB.shape, -1)

    def forward(self, t: int, h_KBH: Tensor) -> Tensor:
        factors_KBF = torch.bmm(h_KBH, self._into_KHF).mul_(self._gate(t))
        return torch.where(self._keep_KTB1[:, t], h_KBH, torch.bmm(factors_KBF, self._out_KHF.transpose(1, 2)))

    def backward(self, t: int, g_KBH: Tensor) -> Tensor:
        # The gate of padding is zero, so a padded row reaches the sum only through its own gradient.
        factors_KBF = torch.bmm(g_KBH, self._out_KHF).mul_(self._gate(t))
        before = torch.bmm(factors_KBF, self._into_KHF.transpose(1, 2))
        return torch.where(self._keep_KTB1[:, t], g_KBH, before)

    def gradients(self, h_KTBH: Tensor, g_KTBH: Tensor) -> tuple[Tensor, ...]:
        h_KPH, g_KPH = h_KTBH.flatten(1, 2), g_KTBH.flatten(1, 2)
        rows = self._rows_KTB
        gate_KPF = self._gates.index_select(0, rows.flatten()).view(len(rows), -1, self._gates.shape[1])
        into_KPF = torch.bmm(h_KPH, self._into_KHF)
        back_KPF = torch.bmm(g_KPH, self._out_KHF)
        g_out = torch.bmm(g_KPH.transpose(1, 2), into_KPF * gate_KPF)
        g_gate = one_hot(self._tokens_KBT, self._R, h_KPH.dtype) @ (into_KPF * back_KPF)
        g_into = torch.bmm(h_KPH.transpose(1, 2), back_KPF.mul_(gate_KPF))
        return g_out, g_gate, g_into
