"""Full bilinear RNN: Ebrahimi and Memisevic, "Revisiting Bi-Linear State Transitions in RNNs" (2025), Eq. 2.

h_i^t = sum_jk W_ijk x_k^t h_j^{t-1},   that is   h^t = A_x h^{t-1}   with   (A_x)_ij = sum_k W_ijk x_k
"""

from typing import TYPE_CHECKING, Any

from torch import Tensor

from orch.models.bilinear_family.network import BilinearFamily
from orch.models.recurrence import Normalisation, block_scan

if TYPE_CHECKING:
    from orch.models.compiled.transitions import CompiledScan


class Network(BilinearFamily):
    def scan(
        self,
        x_KRD: Tensor,
        tokens_KBT: Tensor,
        normalisation: Normalisation,
        additive_KRH: Tensor | None,
        read_KBP: Tensor | None = None,
    ) -> Tensor:
        table_KRHH = self.token_table("recurrence.transition", x_KRD)
        options = self["initial_state"], normalisation, additive_KRH
        return block_scan(table_KRHH[..., None], tokens_KBT, *options, read_KBP=read_KBP)

    def gpu_scan(
        self,
        x_KRD: Tensor,
        tokens_KBT: Tensor,
        normalisation: Normalisation,
        every_step: bool,
        additive_KRH: Tensor | None,
    ) -> Tensor:
        from orch.models.gpu_kernels.scan import scan

        table_KRbbn = self.token_table("recurrence.transition", x_KRD)[..., None]
        return scan(table_KRbbn, tokens_KBT, self["initial_state"], normalisation, every_step, additive_KRH)

    def compiled_scan(self, x_KRD: Tensor, tokens_KBT: Tensor, *options: Any) -> "CompiledScan":
        from orch.models.compiled.transitions import TableScan, WeightedBlocks

        return TableScan(WeightedBlocks(self["recurrence.transition"], x_KRD, self.vocabularies), tokens_KBT, *options)
