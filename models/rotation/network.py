"""Rotation RNN: 2x2 blocks that are rotations, their angles linear in the input (R2 block-diagonal, Sec. 2.3).

A_x = diag(R_2(theta_1(x)), ..., R_2(theta_{H/2}(x))),   theta(x) = W x
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orch.models.bilinear_family.transition_table import TransitionTable

if TYPE_CHECKING:
    from orch.models.compiled.transitions import Rotations


class Network(TransitionTable):
    def angles(self, x_KRD: Tensor) -> Tensor:
        """Return theta for every readable token and pair of state entries (j, j + H/2): (K, R, H/2)."""
        return self.token_table("recurrence.angle", x_KRD)

    def table(self, x_KRD: Tensor) -> Tensor:
        theta_KRn = self.angles(x_KRD)
        cos, sin = theta_KRn.cos(), theta_KRn.sin()
        return torch.unflatten(torch.stack([cos, -sin, sin, cos], dim=2), 2, (2, 2))

    def gpu_table(self, x_KRD: Tensor) -> Tensor:
        from orch.models.gpu_kernels.rotation import rotation_table

        return rotation_table(self.angles(x_KRD))

    @property
    def answers_faster(self) -> bool:
        return True

    def compiled_table(self, x_KRD: Tensor) -> "Rotations":
        from orch.models.compiled.transitions import Rotations

        return Rotations(self["recurrence.angle"], x_KRD, self.vocabularies)
