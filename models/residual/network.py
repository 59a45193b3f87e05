"""Networks of residual blocks, stacked over trials. A model defines how a block mixes positions, in three parts.

    x ← x + leave(scan(enter(norm(x))));   x ← x + W_down (silu(W_gate norm(x)) ∘ W_up norm(x));   W norm(x) + b

The norm is RMS. Only `scan` looks along time, and it is causal. So the first block enters once per token of the
vocabulary, which is tiny, and the last block leaves only at [EOI], the only place that is read. Time comes before
samples, so that one position of all samples is contiguous.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orch.models.autograd import apply_function
from orch.models.config import Vocabulary
from orch.models.kernel import is_compiled
from orch.models.network import Network, State, normal, uniform
from orch.models.places import last_place, places_of
from orch.models.residual.config import TABLE_ROWS, ResidualConfig

if TYPE_CHECKING:
    from orch.models.token_table import Gradient

NORM_EPSILON = 1e-5
LARGE_PRODUCT = 1 << 20
"""Multiplications of one trial from which compiled kernels use oneDNN, trial by trial."""


class ResidualNetwork(Network):
    config: ResidualConfig

    @classmethod
    def fresh(cls, config: ResidualConfig, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        return {name: cls.draw(config, name, shape, generator) for name, shape in config.shapes(vocabulary).items()}

    @classmethod
    def draw(cls, config: ResidualConfig, name: str, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        """Draw one parameter: embeddings as torch.nn does, matrices as its linear layers, norms as ones."""
        if name == "embedding":
            return normal(shape, 1.0, generator)
        if name.endswith("norm"):
            return torch.ones(*shape)
        return uniform(shape, 1 / math.sqrt(shape[-1]), generator)

    def enter(self, layer: int, x_KPH: Tensor) -> Tensor:
        """Return what a block's recurrence is given at each position, (K, P, G), from its normalised input."""
        raise NotImplementedError

    def scan(self, layer: int, entered_KTBG: Tensor, end_KB: Tensor) -> Tensor:
        """Run a block's recurrence along time: (K, T, B, any size). What follows the positions `end_KB` is not read."""
        raise NotImplementedError

    def leave(self, layer: int, y_KPI: Tensor, x_KPH: Tensor) -> Tensor:
        """Return what a block's mixer adds, given what its recurrence returned and the block's input."""
        raise NotImplementedError

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        K = len(tokens_KBT)
        # Padding has no embedding. Any token will do, because a causal model cannot see what follows [EOI].
        readable_KTB = tokens_KBT.mT.clamp(max=self.vocabulary.readable - 1)
        trials_K = torch.arange(K, device=tokens_KBT.device)
        E_KVH = pad_rows(self["embedding"])
        rows_KTB = readable_KTB + (trials_K * E_KVH.shape[1])[:, None, None]
        last, last_KB = self.config.layers - 1, last_place(end_KB)
        x_KTBH = F.embedding(rows_KTB, E_KVH.flatten(0, 1))
        entered_KTBG = F.embedding(rows_KTB, self.enter(0, self.normed(0, E_KVH)).flatten(0, 1))
        for layer in range(last):
            y_KTBI = self.scan(layer, entered_KTBG, last_KB)
            x_KPH = self._leave(layer, y_KTBI.flatten(1, 2), x_KTBH.flatten(1, 2))
            x_KTBH = x_KPH.view_as(x_KTBH)
            entered_KPG = self.enter(layer + 1, self.normed(layer + 1, x_KPH))
            entered_KTBG = entered_KPG.view(*x_KTBH.shape[:3], -1)
        if end_KB.dim() > 2:
            y_KBI = at_end(self.scan(last, entered_KTBG, last_KB), end_KB)
        else:
            y_KBI = self.scan_to_end(last, entered_KTBG, end_KB)
        x_KBH = self._leave(last, y_KBI, at_end(x_KTBH, end_KB))
        return self.head(rms_norm(x_KBH, self["norm"]))

    def scan_to_end(self, layer: int, entered_KTBG: Tensor, end_KB: Tensor) -> Tensor:
        """Return what `scan` does at the positions `end_KB`: (K, B, any size)."""
        return at_end(self.scan(layer, entered_KTBG, end_KB), end_KB)

    def compiled_gradients(self, tokens_KBT: Tensor, target_KB: Tensor) -> "tuple[Tensor, dict[str, Gradient]]":
        """Return losses and gradients. Only the recurrence is compiled; the rest is a few large products."""
        return self.gradients_around_compiled(tokens_KBT, target_KB)

    def of(self, layer: int, name: str) -> Tensor:
        """Return the stacked parameter of a block."""
        return self[f"blocks.{layer}.{name}"]

    def linear(self, layer: int, name: str, x_KPH: Tensor) -> Tensor:
        """Multiply every vector of a trial with the trial's matrix of this name."""
        weight_KGH = self.of(layer, name)
        if is_compiled(self.kernel) and x_KPH.shape[1] * weight_KGH[0].numel() >= LARGE_PRODUCT:
            return apply_function(_Product, x_KPH, weight_KGH)
        return torch.bmm(x_KPH, weight_KGH.mT)

    def normed(self, layer: int, x_KPH: Tensor) -> Tensor:
        """Return a block's normalised input."""
        return rms_norm(x_KPH, self.of(layer, "mixer.norm"))

    def _leave(self, layer: int, y_KPI: Tensor, x_KPH: Tensor) -> Tensor:
        x_KPH = x_KPH + self.leave(layer, y_KPI, x_KPH)
        if not self.config.hidden:
            return x_KPH
        normed = rms_norm(x_KPH, self.of(layer, "mlp.norm"))
        inner = F.silu(self.linear(layer, "mlp.gate", normed)) * self.linear(layer, "mlp.up", normed)
        return x_KPH + self.linear(layer, "mlp.down", inner)


def at_end(x_KTBH: Tensor, end_KB: Tensor) -> Tensor:
    """Return the vectors at the positions `end_KB`: (K, B, H), or (K, BP, H) if they are (K, B, P)."""
    K, T, _, H = x_KTBH.shape
    return x_KTBH.reshape(-1, H).index_select(0, places_of(end_KB, T)).view(K, -1, H)


def pad_rows(table_KRH: Tensor) -> Tensor:
    """Append rows of zeros, so that functions of a table's entries are the same alone and in a stack.

    A CPU computes a function of many numbers at once, and those left over at the end of all trials one by one, with
    other rounding.
    """
    return F.pad(table_KRH, (0, 0, 0, -table_KRH.shape[1] % TABLE_ROWS))


def by_entry(function: Callable[[Tensor], Tensor], x_KI: Tensor) -> Tensor:
    """Apply a function to every entry of each trial's vector, with the same result alone and in a stack."""
    return function(F.pad(x_KI, (0, -x_KI.shape[1] % TABLE_ROWS)))[:, : x_KI.shape[1]]


def head_norm(x_KPH: Tensor, heads: int, weight_KH: Tensor) -> Tensor:
    """Divide each head's part of a vector by the root of its mean square, and scale."""
    by_head_KPad = torch.unflatten(x_KPH, -1, (heads, -1))
    return F.rms_norm(by_head_KPad, by_head_KPad.shape[-1:], eps=NORM_EPSILON).flatten(2) * weight_KH[:, None]


def rms_norm(x_KPH: Tensor, weight_KH: Tensor) -> Tensor:
    """Divide by the root of the mean square over the last axis, and scale. Any axes may follow that of the trial."""
    normed = F.rms_norm(x_KPH, x_KPH.shape[-1:], eps=NORM_EPSILON)
    return normed * weight_KH.view(len(weight_KH), *[1] * (x_KPH.dim() - 2), -1)


class _Product(torch.autograd.Function):
    """Products of each trial's vectors and matrix with oneDNN, one trial after the other."""

    @staticmethod
    def forward(ctx: Any, x_KPH: Tensor, weight_KGH: Tensor) -> Tensor:
        from orch.models.compiled.matmul import product

        ctx.save_for_backward(x_KPH, weight_KGH)
        return torch.stack([product(x_PH, weight_GH) for x_PH, weight_GH in zip(x_KPH, weight_KGH, strict=True)])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KPG: Tensor) -> tuple[Tensor, ...]:
        from orch.models.compiled.matmul import product

        trials = list(zip(g_KPG, *ctx.saved_tensors, strict=True))
        g_x_KPH = torch.stack([product(g_PG, weight_GH.T) for g_PG, _, weight_GH in trials])
        return g_x_KPH, torch.stack([product(g_PG.T, x_PH.T) for g_PG, x_PH, _ in trials])
