"""Block-diagonal bilinear RNN: the full model's equation within each of n independent blocks of size b (Sec. 2.2.2).

(A_x^(block))_ij = sum_k W^(block)_ijk x_k
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
        table_KRbbn = self.token_table("recurrence.transition", x_KRD)
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
        from orch.models.gpu_kernels.scan import scan

        table_KRbbn = self.token_table("recurrence.transition", x_KRD)
        return scan(table_KRbbn, tokens_KBT, self["initial_state"], normalisation, every_step, additive_KRH)

    @property
    def answers_faster(self) -> bool:
        b, num_blocks = self.config.state_block, self.config.width // self.config.state_block
        return num_blocks >= {1: 128, 2: 1}.get(b, 16) and b <= 8

    def compiled_scan(self, x_KRD: Tensor, tokens_KBT: Tensor, *options: Any) -> "CompiledScan":
        from orch.models.compiled.transitions import TableScan, WeightedBlocks

        return TableScan(WeightedBlocks(self["recurrence.transition"], x_KRD, self.vocabularies), tokens_KBT, *options)
