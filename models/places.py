"""The places at which logits are read: [EOI] of each sample, (K, B), or several positions of each, (K, B, P).

Of several, the last is [EOI]; a sample that has fewer than P repeats it. Only places up to [EOI] are read.
"""

import torch
from torch import Tensor


def last_place(end_KB: Tensor) -> Tensor:
    """Return the position of each sample's [EOI], (K, B)."""
    return end_KB if end_KB.dim() == 2 else end_KB[..., -1]


def several_places(end_KB: Tensor) -> Tensor | None:
    """Return the places of each sample if they are several, (K, B, P), and None if only [EOI] is read."""
    return end_KB if end_KB.dim() > 2 else None


def places_of(end_KB: Tensor, num_tokens: int) -> Tensor:
    """Return the rows of what is read among all positions, stored as (K, T, B)."""
    trials, samples = _numbered(end_KB)
    return (samples + end_KB.shape[1] * (end_KB + num_tokens * trials)).reshape(-1)


def states_at(states_TKBH: Tensor, read_KBP: Tensor) -> Tensor:
    """Return the states after the positions `read_KBP`: (K, BP, H)."""
    H = states_TKBH.shape[3]
    return states_TKBH.reshape(-1, H).index_select(0, _rows(read_KBP)).view(len(read_KBP), -1, H)


def add_at(g_TKBH: Tensor, read_KBP: Tensor, g_KNH: Tensor) -> Tensor:
    """Add the gradient of `states_at`, given that of what it returned, in place."""
    g_TKBH.view(-1, g_TKBH.shape[3]).index_add_(0, _rows(read_KBP), g_KNH.flatten(0, 1))
    return g_TKBH


def _rows(read_KBP: Tensor) -> Tensor:
    """Return the rows of what is read among all states, stored as (T, K, B)."""
    (K, B, _), (trials, samples) = read_KBP.shape, _numbered(read_KBP)
    return ((read_KBP * K + trials) * B + samples).reshape(-1)


def _numbered(end_KB: Tensor) -> tuple[Tensor, Tensor]:
    """Return the number of each trial and of each sample, shaped to broadcast against `end_KB`."""
    K, B, *more = end_KB.shape
    ones = [1] * len(more)
    return (
        torch.arange(K, device=end_KB.device).view(K, 1, *ones),
        torch.arange(B, device=end_KB.device).view(B, *ones),
    )
