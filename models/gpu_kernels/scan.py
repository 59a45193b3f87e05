"""Scans of block-diagonal transitions on a GPU: the block size chooses between all positions and one per launch."""

from torch import Tensor

from orch.models.block_diagonal.config import ONE_LAUNCH as LARGEST_BLOCK
from orch.models.gpu_kernels.block_scan import scan_blocks
from orch.models.gpu_kernels.grouped_scan import scan_groups
from orch.models.recurrence.normalisation import Normalisation


def scan(
    table_KRbbn: Tensor,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    normalisation: Normalisation,
    every_step: bool,
    additive_KRH: Tensor | None,
) -> Tensor:
    """Return the final states, (K, B, H), normalised at every step or only at the last."""
    scan_all = scan_blocks if table_KRbbn.shape[2] <= LARGEST_BLOCK else scan_groups
    return scan_all(table_KRbbn, tokens_KBT, h0_KH, normalisation, every_step, additive_KRH)
