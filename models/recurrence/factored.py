"""Factored transitions: h' = W1 diag(d(x)) W2^T h, with one vector d per token."""

import torch
from torch import Tensor

from models.recurrence.blocks import block_scan
from models.recurrence.normalisation import Normalisation
from models.recurrence.scan import scan
from models.recurrence.tokens import TokenSums, table_rows


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
        table_KRHH = _MultipliedOut.apply(out_KHF, gate_KRF, into_KHF)
        return block_scan(table_KRHH[..., None], tokens_KBT, h0_KH, normalisation, additive_KRH)
    return scan(FactoredTransition, normalisation, tokens_KBT, h0_KH, additive_KRH, out_KHF, gate_KRF, into_KHF)


class _MultipliedOut(torch.autograd.Function):
    """W1 diag(d) W2^T for every token: one matmul per trial, with the tokens' scaled W1 below each other."""

    @staticmethod
    def forward(ctx, out_KHF, gate_KRF, into_KHF):
        scaled_KRHF = out_KHF[:, None] * gate_KRF[:, :, None]
        ctx.save_for_backward(out_KHF, gate_KRF, into_KHF, scaled_KRHF)
        table_KPH = torch.bmm(scaled_KRHF.flatten(1, 2), into_KHF.transpose(1, 2))
        return table_KPH.unflatten(1, scaled_KRHF.shape[1:3])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g_KRHH):
        out_KHF, gate_KRF, into_KHF, scaled_KRHF = ctx.saved_tensors
        g_KPH = g_KRHH.flatten(1, 2)
        g_into = torch.bmm(g_KPH.transpose(1, 2), scaled_KRHF.flatten(1, 2))
        g_scaled = torch.bmm(g_KPH, into_KHF).view_as(scaled_KRHF)
        # Done with the scaled factors, their memory is used again: fresh megabytes are slow to come by.
        g_out = torch.mul(g_scaled, gate_KRF[:, :, None], out=scaled_KRHF).sum(1)
        return g_out, g_scaled.mul_(out_KHF[:, None]).sum(2), g_into


class FactoredTransition:
    """Two matmuls per position, the same for every token, with the token's gates in between."""

    def __init__(self, tokens_KBT: Tensor, out_KHF: Tensor, gate_KRF: Tensor, into_KHF: Tensor):
        K, R, F = gate_KRF.shape
        self._out_KHF, self._into_KHF = out_KHF, into_KHF
        self._gates = torch.nn.functional.pad(gate_KRF, (0, 0, 0, 1)).reshape(K * (R + 1), F)
        self._rows_TKB = table_rows(tokens_KBT, R + 1)
        self._padding_TKB1 = (tokens_KBT == R).permute(2, 0, 1).unsqueeze(-1)
        self._g_gate = TokenSums(tokens_KBT, R)
        self._back_TKBF: list[Tensor] = []

    def _gate(self, t: int) -> Tensor:
        rows_KB = self._rows_TKB[t]
        return self._gates.index_select(0, rows_KB.view(-1)).view(*rows_KB.shape, -1)

    def forward(self, t: int, h_KBH: Tensor) -> Tensor:
        factors_KBF = torch.bmm(h_KBH, self._into_KHF).mul_(self._gate(t))
        return torch.where(self._padding_TKB1[t], h_KBH, torch.bmm(factors_KBF, self._out_KHF.transpose(1, 2)))

    def backward(self, t: int, g_KBH: Tensor) -> Tensor:
        back_KBF = torch.bmm(g_KBH, self._out_KHF)
        self._back_TKBF.insert(0, back_KBF)
        before = torch.bmm(back_KBF * self._gate(t), self._into_KHF.transpose(1, 2))
        return torch.where(self._padding_TKB1[t], g_KBH, before)

    def gradients(self, h_TKBH: Tensor, g_TKBH: Tensor) -> tuple[Tensor, ...]:
        # The gate of padding is zero, so that a padded position adds nothing.
        g_out, g_into = torch.zeros_like(self._out_KHF), torch.zeros_like(self._into_KHF)
        for t, (h_KBH, g_KBH, back_KBF) in enumerate(zip(h_TKBH, g_TKBH, self._back_TKBF, strict=True)):
            gate_KBF, into_KBF = self._gate(t), torch.bmm(h_KBH, self._into_KHF)
            self._g_gate.add(t, (into_KBF * back_KBF)[None])
            g_out.baddbmm_(g_KBH.transpose(1, 2), into_KBF.mul_(gate_KBF))
            g_into.baddbmm_(h_KBH.transpose(1, 2), gate_KBF.mul_(back_KBF))
        return g_out, self._g_gate.total(), g_into
