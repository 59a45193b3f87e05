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
    memory: Memory | None = None
    outputs = []
    for start in range(0, q_NTd.shape[1], chunk):
        some = slice(start, start + chunk)
        gates = log_i_NT[:, some], log_f_NT[:, some].cumsum(1)
        outputs.append(_read(q_NTd[:, some], k_NTd[:, some], v_NTd[:, some], *gates, memory))
        if start + chunk < q_NTd.shape[1]:
            memory = _write(k_NTd[:, some], v_NTd[:, some], *gates, memory)
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1)


def _read(q: Tensor, k: Tensor, v: Tensor, log_i: Tensor, forgotten_NT: Tensor, memory: Memory | None) -> Tensor:
    """Return h at every position of a chunk; `forgotten_NT` is the logarithm of all f since its start."""
    T = q.shape[1]
    is_later_TT = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
    exponent_NTT = (forgotten_NT[:, :, None] + (log_i - forgotten_NT)[:, None]).masked_fill(is_later_TT, -torch.inf)
    m_NT = exponent_NTT.detach().amax(2)
    if memory is not None:
        m_NT = torch.maximum(m_NT, (forgotten_NT + memory[2]).detach())
    weight_NTT = torch.bmm(q, k.mT) * (exponent_NTT - m_NT[..., None]).exp()
    value_NTd, size_NT1 = torch.bmm(weight_NTT, v), weight_NTT.sum(2, keepdim=True)
    if memory is not None:
        C_Ndd, n_N1d, m_N1 = memory
        old_NT1 = (forgotten_NT + m_N1 - m_NT).exp()[..., None]
        value_NTd = value_NTd + old_NT1 * torch.bmm(q, C_Ndd.mT)
        size_NT1 = size_NT1 + old_NT1 * torch.bmm(q, n_N1d.mT)
    return value_NTd / torch.maximum(size_NT1.abs(), (-m_NT).exp()[..., None])


def _write(k: Tensor, v: Tensor, log_i: Tensor, forgotten_NT: Tensor, memory: Memory | None) -> Memory:
    """Return the memory after a chunk."""
    exponent_NT = forgotten_NT[:, -1:] + log_i - forgotten_NT
    m_N1 = exponent_NT.detach().amax(1, keepdim=True)
    if memory is not None:
        m_N1 = torch.maximum(m_N1, (forgotten_NT[:, -1:] + memory[2]).detach())
    written_NTd = (exponent_NT - m_N1).exp()[..., None] * k
    C_Ndd, n_N1d = torch.bmm(v.mT, written_NTd), written_NTd.sum(1, keepdim=True)
    if memory is not None:
        old_N11 = (forgotten_NT[:, -1:] + memory[2] - m_N1).exp()[..., None]
        C_Ndd, n_N1d = old_N11 * memory[0] + C_Ndd, old_N11 * memory[1] + n_N1d
    return C_Ndd, n_N1d, m_N1
