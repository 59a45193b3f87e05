"""The scans of models whose transition is looked up: A_x is computed once for each token, in blocks on the diagonal."""

from typing import TYPE_CHECKING, Any

from torch import Tensor

from orch.models.bilinear_family.network import BilinearFamily
from orch.models.recurrence import Normalisation, block_scan

if TYPE_CHECKING:
    from orch.models.compiled.transitions import CompiledScan, Transitions


class TransitionTable(BilinearFamily):
    """Network of the family whose subclass defines `table`; everything else follows from it."""

    def table(self, x_KRD: Tensor) -> Tensor:
        """Return A_x for every readable token, as n blocks of size b: (K, R, b, b, n)."""
        raise NotImplementedError

    def gpu_table(self, x_KRD: Tensor) -> Tensor:
        """Return the same table, from kernels for GPUs if the model has some."""
        return self.table(x_KRD)

    def compiled_table(self, x_KRD: Tensor) -> "Transitions":
        """Return the same table from compiled kernels: by default `recurrence.transition` times the embeddings."""
        from orch.models.compiled.transitions import WeightedBlocks

        return WeightedBlocks(self["recurrence.transition"], x_KRD, self.vocabularies)

    def scan(
        self,
        x_KRD: Tensor,
        tokens_KBT: Tensor,
        normalisation: Normalisation,
        additive_KRH: Tensor | None,
        read_KBP: Tensor | None = None,
    ) -> Tensor:
        options = self["initial_state"], normalisation, additive_KRH
        return block_scan(self.table(x_KRD), tokens_KBT, *options, read_KBP=read_KBP)

    def gpu_scan(
        self,
        x_KRD: Tensor,
        tokens_KBT: Tensor,
        normalisation: Normalisation,
        every_step: bool,
        additive_KRH: Tensor | None,
    ) -> Tensor:
        from orch.models.gpu_kernels.scan import scan

        h0_KH = self["initial_state"]
        return scan(self.gpu_table(x_KRD), tokens_KBT, h0_KH, normalisation, every_step, additive_KRH)

    def compiled_scan(self, x_KRD: Tensor, tokens_KBT: Tensor, *options: Any) -> "CompiledScan":
        from orch.models.compiled.transitions import TableScan

        return TableScan(self.compiled_table(x_KRD), tokens_KBT, *options)
