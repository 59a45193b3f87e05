"""Networks of residual blocks, stacked over trials. A model defines `mix`, which is causal.

    x ← x + mix(norm(x));   x ← x + W_down (silu(W_gate norm(x)) ∘ W_up norm(x));   logits = W norm(x) + b

The norm is RMS. The head and the last block's perceptron are computed only at [EOI], the only place that is read. Time
comes
before samples, so that one position of all samples is contiguous.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from orch.models.config import Vocabulary
from orch.models.network import Network, State, normal, uniform
from orch.models.residual.config import ResidualConfig

NORM_EPSILON = 1e-5


class ResidualNetwork(Network):
    config: ResidualConfig

    @classmethod
    def fresh(cls, config: ResidualConfig, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        return {name: cls.draw(name, shape, generator) for name, shape in config.shapes(vocabulary).items()}

    @classmethod
    def draw(cls, name: str, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        """Draw one parameter: embeddings as torch.nn does, matrices as its linear layers, norms as ones."""
        if name == "embedding":
            return normal(shape, 1.0, generator)
        if name.endswith("norm"):
            return torch.ones(*shape)
        return uniform(shape, 1 / math.sqrt(shape[-1]), generator)

    def mix(self, layer: int, x_KTBH: Tensor) -> Tensor:
        """Return what a block's mixer adds at every position, given its normalised input."""
        raise NotImplementedError

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        (K, B, T), H = tokens_KBT.shape, self.config.width
        # Padding has no embedding. Any token will do, because a causal model cannot see what follows [EOI].
        readable_KTB = tokens_KBT.mT.clamp(max=self.vocabulary.readable - 1)
        trials_K = torch.arange(K, device=tokens_KBT.device)
        rows_KTB = readable_KTB + (trials_K * self.vocabulary.size)[:, None, None]
        x_KTBH = F.embedding(rows_KTB, self["embedding"].flatten(0, 1))
        last = self.config.layers - 1
        for layer in range(last):
            x_KTBH = self._perceive(layer, self._mixed(layer, x_KTBH))
        # The place of each sample's [EOI] among all positions of all trials.
        places_KB = torch.arange(B, device=end_KB.device) + B * (end_KB + T * trials_K[:, None])
        x_KBH = self._mixed(last, x_KTBH).reshape(-1, H).index_select(0, places_KB.reshape(-1)).view(K, B, H)
        return self.head(rms_norm(self._perceive(last, x_KBH), self["norm"]))

    def of(self, layer: int, name: str) -> Tensor:
        """Return the stacked parameter of a block."""
        return self[f"blocks.{layer}.{name}"]

    def _mixed(self, layer: int, x_KTBH: Tensor) -> Tensor:
        return x_KTBH + self.mix(layer, rms_norm(x_KTBH, self.of(layer, "mixer.norm")))

    def _perceive(self, layer: int, x_KH: Tensor) -> Tensor:
        if not self.config.hidden:
            return x_KH
        normed = rms_norm(x_KH, self.of(layer, "mlp.norm"))
        inner = F.silu(linear(normed, self.of(layer, "mlp.gate"))) * linear(normed, self.of(layer, "mlp.up"))
        return x_KH + linear(inner, self.of(layer, "mlp.down"))


def rms_norm(x_KH: Tensor, weight_KH: Tensor) -> Tensor:
    """Divide by the root of the mean square over the last axis, and scale; the first axis of `x_KH` is the trial."""
    normed = F.rms_norm(x_KH, x_KH.shape[-1:], eps=NORM_EPSILON)
    return normed * weight_KH.view(len(weight_KH), *[1] * (x_KH.dim() - 2), -1)


def linear(x_KH: Tensor, weight_KGH: Tensor) -> Tensor:
    """Multiply every vector of a trial with the trial's matrix. Any axes may stand between trial and vector."""
    product_KPG = torch.bmm(x_KH.flatten(1, -2), weight_KGH.mT)
    return product_KPG.view(*x_KH.shape[:-1], -1)
