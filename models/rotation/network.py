"""Rotation RNN: 2x2 blocks that are rotations, their angles linear in the input (R2 block-diagonal, Sec. 2.3).

A_x = diag(R_2(theta_1(x)), ..., R_2(theta_{H/2}(x))),   theta(x) = W x
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from orch.models.bilinear_family.network import BilinearFamily
from orch.models.recurrence import Normalisation, block_scan

if TYPE_CHECKING:
    from orch.models.compiled.transitions import CompiledScan


class Network(BilinearFamily):
    def angles(self, x_KRD: Tensor) -> Tensor:
        """Return theta for every readable token and pair of state entries (j, j + H/2): (K, R, H/2)."""
        return self.token_table("recurrence.angle", x_KRD)

    def scan(
        self,
        x_KRD: Tensor,
        tokens_KBT: Tensor,
        normalisation: Normalisation,
        additive_KRH: Tensor | None,
        read_KBP: Tensor | None = None,
    ) -> Tensor:
        theta_KRn = self.angles(x_KRD)
        cos, sin = theta_KRn.cos(), theta_KRn.sin()
        table_KRbbn = torch.unflatten(torch.stack([cos, -sin, sin, cos], dim=2), 2, (2, 2))
        options = self["initial_state"], normalisation, additive_KRH
        return block_scan(table_KRbbn, tokens_KBT, *options, read_KBP=read_KBP)

    def gpu_scan(
        self,
        x_KRD: Tensor,
        tokens_KBT: Tensor,
        normalisation: Normalisation,
        every_step: bool,
        additive_KRH: Tensor | None,
    ) -> Tensor:
        from orch.models.gpu_kernels.rotation import rotation_table
        from orch.models.gpu_kernels.scan import scan

        table_KRbbn = rotation_table(self.angles(x_KRD))
        return scan(table_KRbbn, tokens_KBT, self["initial_state"], normalisation, every_step, additive_KRH)

    @property
    def answers_faster(self) -> bool:
        return True

    def compiled_scan(self, x_KRD: Tensor, tokens_KBT: Tensor, *options: Any) -> "CompiledScan":
        from orch.models.compiled.transitions import Rotations, TableScan

        return TableScan(Rotations(self["recurrence.angle"], x_KRD, self.vocabularies), tokens_KBT, *options)
