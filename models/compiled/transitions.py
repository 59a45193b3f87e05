"""Tables of transitions for the compiled scan, each with the gradients of what it is made of."""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from orch.models.compiled.block_scan import BlockScan
from orch.models.compiled.token_table import token_table, token_table_back
from orch.models.recurrence.normalisation import Normalisation
from orch.models.token_table import Gradient
from orch.models.vocabularies import Vocabularies


class ScanGradients(NamedTuple):
    """The gradients of a recurrence."""

    x_KRD: Tensor
    """The gradient of the embeddings of readable tokens, through the transitions."""
    h0_KH: Tensor
    additive_KRH: Tensor | None
    parameters: dict[str, Gradient]
    """The gradients of the recurrence's parameters, by name."""


class CompiledScan(Protocol):
    """One pass over a batch: `forward`, then `backward` if states were kept."""

    def forward(self, keep: bool) -> Tensor: ...

    def backward(self, g_KBH: Tensor) -> ScanGradients: ...


class Transitions(Protocol):
    """One block-diagonal transition per readable token."""

    table_KRbbn: Tensor

    def backward(self, g_table_KRbbn: Tensor) -> tuple[Tensor, dict[str, Gradient]]:
        """Return the gradients of the embeddings and of the parameters, by name."""
        ...


class TableScan:
    """A scan whose transitions are a table."""

    def __init__(
        self,
        transitions: Transitions,
        tokens_KBT: Tensor,
        h0_KH: Tensor,
        normalisation: Normalisation,
        every_step: bool,
        additive_KRH: Tensor | None,
    ):
        self._transitions = transitions
        self._scan = BlockScan(transitions.table_KRbbn, tokens_KBT, h0_KH, normalisation, every_step, additive_KRH)

    def forward(self, keep: bool) -> Tensor:
        return self._scan.forward(keep)

    def backward(self, g_KBH: Tensor) -> ScanGradients:
        g_table, g_h0, g_additive = self._scan.backward(g_KBH)
        g_x, parameters = self._transitions.backward(g_table)
        return ScanGradients(g_x, g_h0, g_additive, parameters)


class WeightedBlocks:
    """Blocks that are linear in the embedding: `recurrence.transition` times x."""

    def __init__(self, weight_KbbnD: Tensor, x_KRD: Tensor, vocabularies: Vocabularies):
        """The weight of one block may leave out the axis of blocks."""
        self._weight, self._x_KRD, self._vocabularies = weight_KbbnD, x_KRD, vocabularies
        table = token_table(weight_KbbnD, x_KRD, vocabularies)
        self.table_KRbbn = table if table.dim() == 5 else table[..., None]

    def backward(self, g_table_KRbbn: Tensor) -> tuple[Tensor, dict[str, Gradient]]:
        g_weight, g_x = token_table_back(self._weight, self._x_KRD, self._vocabularies, g_table_KRbbn)
        return g_x, {"recurrence.transition": g_weight}


class Rotations:
    """Rotations of pairs, by angles that are linear in the embedding: `recurrence.angle` times x."""

    def __init__(self, weight_KnD: Tensor, x_KRD: Tensor, vocabularies: Vocabularies):
        self._weight, self._x_KRD, self._vocabularies = weight_KnD, x_KRD, vocabularies
        theta_KRn = token_table(weight_KnD, x_KRD, vocabularies)
        self._cos, self._sin = theta_KRn.cos(), theta_KRn.sin()
        stacked = torch.stack([self._cos, -self._sin, self._sin, self._cos], dim=2)
        self.table_KRbbn = torch.unflatten(stacked, 2, (2, 2))

    def backward(self, g_table_KRbbn: Tensor) -> tuple[Tensor, dict[str, Gradient]]:
        (g_cos, g_minus_sin), (g_sin, g_cos_too) = (row.unbind(2) for row in g_table_KRbbn.unbind(2))
        g_theta = (g_sin - g_minus_sin) * self._cos - (g_cos + g_cos_too) * self._sin
        g_weight, g_x = token_table_back(self._weight, self._x_KRD, self._vocabularies, g_theta)
        return g_x, {"recurrence.angle": g_weight}
