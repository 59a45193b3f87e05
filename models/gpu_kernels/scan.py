"""Scans of block-diagonal transitions on a GPU, of which the block size chooses one."""

from dataclasses import replace

from torch import Tensor

from orch.models.gpu_kernels.block_scan import LARGEST_BLOCK, scan_blocks
from orch.models.recurrence.blocks import block_scan
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
    if table_KRbbn.shape[2] > LARGEST_BLOCK:
        each = normalisation if every_step else replace(normalisation, kind="none")
        h_KBH = block_scan(table_KRbbn, tokens_KBT, h0_KH, each, additive_KRH)
        return h_KBH if every_step else normalisation(h_KBH)
    return scan_blocks(table_KRbbn, tokens_KBT, h0_KH, normalisation, every_step, additive_KRH)
