"""The delta rule: a matrix of associations S, rewritten by products of generalised Householder reflections.

    S_i = α_i S_{i-1} (I - β_i k_i k_iᵀ) + β_i v_i k_iᵀ;    o_t = S_{nt} q_t

Every token writes n times: i counts writes, t tokens, and o_t reads after a token's last write. Keys have norm 1, so
that I - β k kᵀ has the eigenvalue 1 - β along k. Shapes: N sequences, T tokens, W = n T writes, d components of a key
and of a value.
"""

import torch
from torch import Tensor

CHUNK = 64
"""Writes that are solved for at once. Work grows with its square, and the number of steps falls with it."""


def delta_rule(
    q_NTd: Tensor, k_NWd: Tensor, v_NWd: Tensor, beta_NW: Tensor, log_decay_NW: Tensor | None = None, chunk: int = CHUNK
) -> Tensor:
    """Return what every token reads, (N, T, d). The logarithm of α is `log_decay_NW`; None for α = 1.

    With u_i = β_i (v_i - α_i S_{i-1} k_i), the state is a sum of the writes u_j k_jᵀ, each decayed since it was made.
    So the u of a chunk solve a triangular system, and no state is needed between its positions (the WY form: Yang et
    al., 2024, "Parallelizing Linear Transformers with the Delta Rule over Sequence Length").
    """
    per_token = k_NWd.shape[1] // q_NTd.shape[1]
    tokens = max(1, chunk // per_token)
    state_Ndd: Tensor | None = None
    outputs = []
    for start in range(0, q_NTd.shape[1], tokens):
        writes = slice(start * per_token, (start + tokens) * per_token)
        decay = None if log_decay_NW is None else log_decay_NW[:, writes].cumsum(1)
        output, state_Ndd = _solve_chunk(
            q_NTd[:, start : start + tokens], k_NWd[:, writes], v_NWd[:, writes], beta_NW[:, writes], decay, state_Ndd
        )
        outputs.append(output)
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1)


def _solve_chunk(
    q_NTd: Tensor, k_NWd: Tensor, v_NWd: Tensor, beta_NW: Tensor, decay_NW: Tensor | None, state_Ndd: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return a chunk's outputs and the state after it; `decay_NW` is the logarithm of all decay since its start."""
    (W, T), device = (k_NWd.shape[1], q_NTd.shape[1]), q_NTd.device
    write_W, last_T = torch.arange(W, device=device), torch.arange(1, T + 1, device=device) * (W // T) - 1
    overlap_NWW = torch.bmm(k_NWd * beta_NW[..., None], k_NWd.mT)
    reads_NTW = torch.bmm(q_NTd, k_NWd.mT).masked_fill(write_W > last_T[:, None], 0)
    right_NWd = v_NWd
    if decay_NW is not None:
        at_T = decay_NW[:, last_T]
        # Only what was written before is read, so that no exponent is positive.
        overlap_NWW = overlap_NWW * (decay_NW[:, :, None] - decay_NW[:, None]).clamp(max=0).exp()
        reads_NTW = reads_NTW * (at_T[:, :, None] - decay_NW[:, None]).clamp(max=0).exp()
    if state_Ndd is not None:
        known = torch.bmm(k_NWd, state_Ndd.mT)
        right_NWd = v_NWd - (known if decay_NW is None else known * decay_NW.exp()[..., None])
    right_NWd = right_NWd * beta_NW[..., None]
    numbers = torch.promote_types(right_NWd.dtype, torch.float32)  # no solver takes the bfloat16 of autocast
    u_NWd = torch.linalg.solve_triangular(
        overlap_NWW.to(numbers), right_NWd.to(numbers), upper=False, unitriangular=True
    )
    output = torch.bmm(reads_NTW, u_NWd)
    if state_Ndd is not None:
        read = torch.bmm(q_NTd, state_Ndd.mT)
        output = output + (read if decay_NW is None else read * at_T.exp()[..., None])
    if decay_NW is None:
        after = torch.bmm(u_NWd.mT, k_NWd)
        return output, after if state_Ndd is None else state_Ndd + after
    until_end = (decay_NW[:, -1:] - decay_NW).exp()
    after = torch.bmm(u_NWd.mT, k_NWd * until_end[..., None])
    return output, after if state_Ndd is None else state_Ndd * decay_NW[:, -1:, None].exp() + after


def delta_rule_by_step(
    q_NTd: Tensor, k_NWd: Tensor, v_NWd: Tensor, beta_NW: Tensor, log_decay_NW: Tensor | None = None
) -> Tensor:
    """Return the same as `delta_rule`, write by write: the equation as it stands, to compare with."""
    N, T, d = q_NTd.shape
    per_token = k_NWd.shape[1] // T
    state_Ndd, outputs = q_NTd.new_zeros(N, v_NWd.shape[2], d), []
    for write, (k, v, beta) in enumerate(zip(k_NWd.unbind(1), v_NWd.unbind(1), beta_NW.unbind(1), strict=True)):
        if log_decay_NW is not None:
            state_Ndd = state_Ndd * log_decay_NW[:, write, None, None].exp()
        error_Nd = v - torch.bmm(state_Ndd, k[..., None])[..., 0]
        state_Ndd = state_Ndd + (beta[:, None] * error_Nd)[..., None] * k[:, None]
        if write % per_token == per_token - 1:
            outputs.append(torch.bmm(state_Ndd, q_NTd[:, write // per_token, :, None])[..., 0])
    return torch.stack(outputs, dim=1)
