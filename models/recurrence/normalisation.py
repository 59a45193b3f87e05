"""State normalisation: the division of a bilinear state after a step, and the gradient of that division.

A pure bilinear recurrence is scale-invariant, so dividing the state by a number changes only the scale the head sees.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

TINY = 1e-30
"""Smallest number by which a state is divided."""


@dataclass(frozen=True, slots=True)
class Normalisation:
    """`kind`: none, unit (norm 1), rms (mean square 1) or block (each block to norm 1), for blocks of `block_size`."""

    kind: str
    block_size: int
    blocks_apart: bool = False
    """True if the components of a block are adjacent, rather than the blocks: see `blocks.py`."""

    def turned(self) -> "Normalisation":
        """Return the same normalisation for states in the other layout."""
        return replace(self, blocks_apart=not self.blocks_apart)

    def scale(self, u_KBH: Tensor) -> Tensor:
        """Return the positive divisor, shaped to broadcast against the state as `_view` sees it."""
        if self.kind == "block":
            # Not vector_norm, which takes fifty times as long over an axis that is not the last.
            return self._view(u_KBH).square().sum(self._within, keepdim=True).sqrt_().clamp_min_(TINY)
        scale_KB1: Tensor = torch.linalg.vector_norm(u_KBH, dim=-1, keepdim=True)
        if self.kind == "rms":
            scale_KB1.div_(math.sqrt(u_KBH.shape[-1]))
        return scale_KB1.clamp_min_(TINY)

    def forward(self, u_KBH: Tensor, out: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Return the normalised state and the divisor."""
        if self.kind == "none":
            return (u_KBH if out is None else out.copy_(u_KBH)), None
        scale = self.scale(u_KBH)
        if out is None:
            return (self._view(u_KBH) / scale).view_as(u_KBH), scale
        torch.div(self._view(u_KBH), scale, out=self._view(out))
        return out, scale

    def backward(self, g_KBH: Tensor, y_KBH: Tensor, scale: Tensor | None, out: Tensor) -> Tensor:
        """Return the gradient at u, given the gradient at y = u / scale(u). Its part along y is removed."""
        if scale is None:
            return out.copy_(g_KBH)
        if self.kind == "block":
            y, g = self._view(y_KBH), self._view(g_KBH)
            along = (g * y).sum(self._within, keepdim=True)
        else:
            y, g = y_KBH, g_KBH
            along = torch.linalg.vecdot(g, y).unsqueeze(-1)
            if self.kind == "rms":
                along.div_(y.shape[-1])
        view = self._view(out)
        torch.addcmul(g, y, along, value=-1, out=view)
        view.div_(scale)
        return out

    def __call__(self, u_KBH: Tensor) -> Tensor:
        """Normalise differentiably, for a state that is normalised once, after the last step."""
        if self.kind == "none":
            return u_KBH
        if self.kind == "block":
            u = self._view(u_KBH)
            norm: Tensor = torch.linalg.vector_norm(u, dim=self._within, keepdim=True)
            return (u / norm.clamp_min(TINY)).view_as(u_KBH)
        scale: Tensor = torch.linalg.vector_norm(u_KBH, dim=-1, keepdim=True).clamp_min(TINY)
        return u_KBH / scale * (math.sqrt(u_KBH.shape[-1]) if self.kind == "rms" else 1.0)

    def _view(self, x_KBH: Tensor) -> Tensor:
        """View a state as (K, B, b, n), or (K, B, n, b) if a block's components are adjacent."""
        if self.kind != "block":
            return x_KBH
        return torch.unflatten(x_KBH, -1, (-1, self.block_size) if self.blocks_apart else (self.block_size, -1))

    @property
    def _within(self) -> int:
        """Axis of a block's components."""
        return -1 if self.blocks_apart else -2
