"""Factored transitions: h' = W1 diag(d(x)) W2^T h, with one vector d per token."""

from typing import Any

import torch
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.recurrence.blocks import block_scan
from orch.models.recurrence.normalisation import Normalisation
from orch.models.recurrence.scan import scan
from orch.models.recurrence.token_lookup import TokenSums, table_rows, with_padding


def factored_scan(
    out_KHF: Tensor,
    gate_KRF: Tensor,
    into_KHF: Tensor,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    normalisation: Normalisation,
    additive_KRH: Tensor | None = None,
    read_KBP: Tensor | None = None,
) -> Tensor:
    """Return the final states, or those after the positions `read_KBP`, by the cheaper of two orders of multiplication.

    Either every position goes through the factors, or one H x H transition per token is multiplied out beforehand,
    which is cheaper for long sequences, many samples and many factors.
    """
    if multiplies_out(tokens_KBT, gate_KRF, out_KHF):
        table_KRHH = apply_function(_MultipliedOut, out_KHF, gate_KRF, into_KHF)
        return block_scan(table_KRHH[..., None], tokens_KBT, h0_KH, normalisation, additive_KRH, read_KBP=read_KBP)
    options, factors = (normalisation, tokens_KBT, h0_KH, additive_KRH), (out_KHF, gate_KRF, into_KHF)
    return scan(FactoredTransition, *options, *factors, read_KBP=read_KBP)


def multiplies_out(tokens_KBT: Tensor, gate_KRF: Tensor, out_KHF: Tensor) -> bool:
    """Return whether multiplying the factors out, once per token, takes fewer operations."""
    (_, B, T), (_, R, F), H = tokens_KBT.shape, gate_KRF.shape, out_KHF.shape[1]
    return R * H * F + B * T * H < 2 * B * T * F


class _MultipliedOut(torch.autograd.Function):
    """Computes W1 diag(d) W2^T, one token after the other.

    The scaled factors of all tokens of a pack of trials would not stay in the cache.
    """

    @staticmethod
    def forward(ctx: Any, out_KHF: Tensor, gate_KRF: Tensor, into_KHF: Tensor) -> Tensor:
        ctx.save_for_backward(out_KHF, gate_KRF, into_KHF)
        (K, H, _), R = out_KHF.shape, gate_KRF.shape[1]
        table_RKHH, scaled_KHF = out_KHF.new_empty(R, K, H, H), torch.empty_like(out_KHF)
        for table_KHH, gate_KF in zip(table_RKHH, gate_KRF.unbind(1), strict=True):
            torch.mul(out_KHF, gate_KF[:, None], out=scaled_KHF)
            torch.bmm(scaled_KHF, into_KHF.transpose(1, 2), out=table_KHH)
        return table_RKHH.transpose(0, 1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KRHH: Tensor) -> tuple[Tensor, ...]:
        out_KHF, gate_KRF, into_KHF = ctx.saved_tensors
        g_out, g_into, buffer_KHF = torch.zeros_like(out_KHF), torch.zeros_like(into_KHF), torch.empty_like(out_KHF)
        g_gates = []
        for g_KHH, gate_KF in zip(g_KRHH.unbind(1), gate_KRF.unbind(1), strict=True):
            scaled_KHF = torch.mul(out_KHF, gate_KF[:, None], out=buffer_KHF)
            g_into.baddbmm_(g_KHH.transpose(1, 2), scaled_KHF)
            g_scaled = torch.bmm(g_KHH, into_KHF, out=buffer_KHF)
            g_out.addcmul_(g_scaled, gate_KF[:, None])
            g_gates.append(g_scaled.mul_(out_KHF).sum(1))
        return g_out, torch.stack(g_gates, dim=1), g_into


class FactoredTransition:
    """Applies the factors: two matmuls per position, the same for every token, with the token's gates in between."""

    def __init__(self, tokens_KBT: Tensor, out_KHF: Tensor, gate_KRF: Tensor, into_KHF: Tensor):
        self._tokens_KBT, self._R = tokens_KBT, gate_KRF.shape[1]
        self._out_KHF, self._into_KHF = out_KHF, into_KHF
        self._gates = with_padding(gate_KRF)
        self._rows_TKB = table_rows(tokens_KBT, self._R + 1)
        self._padding_TKB1 = (tokens_KBT == self._R).permute(2, 0, 1).unsqueeze(-1)
        self._back_KBF: dict[int, Tensor] = {}

    def _gate(self, t: int) -> Tensor:
        rows_KB = self._rows_TKB[t]
        return self._gates.index_select(0, rows_KB.view(-1)).view(*rows_KB.shape, -1)

    def forward(self, t: int, h_KBH: Tensor) -> Tensor:
        factors_KBF = torch.bmm(h_KBH, self._into_KHF).mul_(self._gate(t))
        return torch.where(self._padding_TKB1[t], h_KBH, torch.bmm(factors_KBF, self._out_KHF.transpose(1, 2)))

    def backward(self, t: int, g_KBH: Tensor) -> Tensor:
        back_KBF = self._back_KBF[t] = torch.bmm(g_KBH, self._out_KHF)
        before = torch.bmm(back_KBF * self._gate(t), self._into_KHF.transpose(1, 2))
        return torch.where(self._padding_TKB1[t], g_KBH, before)

    def gradients(self, h_TKBH: Tensor, g_TKBH: Tensor) -> tuple[Tensor, ...]:
        g_gate = TokenSums(self._tokens_KBT, self._R)
        g_out, g_into = torch.zeros_like(self._out_KHF), torch.zeros_like(self._into_KHF)
        for t, (h_KBH, g_KBH) in enumerate(zip(h_TKBH, g_TKBH, strict=True)):
            into_KBF, back_KBF, gate_KBF = torch.bmm(h_KBH, self._into_KHF), self._back_KBF.pop(t), self._gate(t)
            g_gate.add(t, (into_KBF * back_KBF)[None])
            # The gate of padding is zero, so that a padded position adds nothing.
            g_out.baddbmm_(g_KBH.transpose(1, 2), into_KBF.mul_(gate_KBF))
            g_into.baddbmm_(h_KBH.transpose(1, 2), back_KBF.mul_(gate_KBF))
        return g_out, g_gate.total(), g_into
