"""Matrix products of the compiled kernels. All that is private to torch here is one operator."""

import torch
from torch import Tensor

_LARGE = 1 << 20
"""Multiplications from which oneDNN is faster than torch's default, which leaves half of AMD's vector units idle."""
_ONEDNN = hasattr(torch.ops.mkldnn, "_linear_pointwise")


def product(x_MI: Tensor, weight_OI: Tensor) -> Tensor:
    """Return x times the transposed weight: (M, O). Either may be a transposed view."""
    if _ONEDNN and len(x_MI) * weight_OI.numel() >= _LARGE:
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x_MI, weight_OI, None, "none", [], "")
        return result
    return torch.mm(x_MI, weight_OI.T)
