"""The matrix memory of the mLSTM, with exponential gates, in chunks of positions.

    C_t = f_t C_{t-1} + i_t v_t k_tᵀ;   n_t = f_t n_{t-1} + i_t k_t;   h_t = C_t q_t / max(|n_t·q_t|, 1)

C, n and 1 are all divided by e^m, with m the largest exponent so far, so that no exponential overflows. h does not
depend on m, and no gradient flows through it. Shapes: N sequences, T positions, d components.
"""

import torch
from torch import Tensor

CHUNK = 64
"""Positions that are computed at once."""

Memory = tuple[Tensor, Tensor, Tensor]
"""C (N, d, d) and n (N, 1, d), divided by e^m, and m (N, 1)."""


def mlstm(
    q_NTd: Tensor, k_NTd: Tensor, v_NTd: Tensor, log_i_NT: Tensor, log_f_NT: Tensor, chunk: int = CHUNK
) -> Tensor:
    """Return h at every position, (N, T, d), given the logarithms of the gates."""
    N, T, d = q_NTd.shape
    memory: Memory = q_NTd.new_zeros(N, d, d), q_NTd.new_zeros(N, 1, d), q_NTd.new_full((N, 1), -1e30)
    outputs = []
    for start in range(0, T, chunk):
        some = slice(start, start + chunk)
        output, memory = _chunk(
            q_NTd[:, some], k_NTd[:, some], v_NTd[:, some], log_i_NT[:, some], log_f_NT[:, some], memory
        )
        outputs.append(output)
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1)


def _chunk(q: Tensor, k: Tensor, v: Tensor, log_i: Tensor, log_f: Tensor, memory: Memory) -> tuple[Tensor, Memory]:
    C_Ndd, n_N1d, m_N1 = memory
    T = q.shape[1]
    forgotten_NT = log_f.cumsum(1)
    is_later_TT = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
    exponent_NTT = (forgotten_NT[:, :, None] + (log_i - forgotten_NT)[:, None]).masked_fill(is_later_TT, -1e30)
    before_NT = forgotten_NT + m_N1
    m_NT = torch.maximum(exponent_NTT.amax(2), before_NT).detach()
    weight_NTT = torch.bmm(q, k.mT) * (exponent_NTT - m_NT[..., None]).exp()
    old_NT1 = (before_NT - m_NT).exp()[..., None]
    value_NTd = torch.bmm(weight_NTT, v) + old_NT1 * torch.bmm(q, C_Ndd.mT)
    size_NT1 = weight_NTT.sum(2, keepdim=True) + old_NT1 * torch.bmm(q, n_N1d.mT)
    h_NTd = value_NTd / torch.maximum(size_NT1.abs(), (-m_NT).exp()[..., None])
    # What the chunk leaves behind is what its last position sees, of keys instead of a query.
    last_NT1 = (exponent_NTT[:, -1] - m_NT[:, -1:]).exp()[..., None]
    C_Ndd = old_NT1[:, -1:] * C_Ndd + torch.bmm(v.mT, last_NT1 * k)
    n_N1d = old_NT1[:, -1:] * n_N1d + (last_NT1 * k).sum(1, keepdim=True)
    return h_NTd, (C_Ndd, n_N1d, m_NT[:, -1:])
