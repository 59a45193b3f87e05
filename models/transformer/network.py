"""Transformer: GPT-2 (Radford et al., 2019), with the parameters of transformers' GPT2LMHeadModel.

    x' = x + attention(norm(x));   x'' = x' + mlp(norm(x'));   logits = E norm(x'')   with E the tied embedding

All trials of a stack share every product. The last block is computed only at [EOI], the only place that is read.
Shapes beyond the package's: P positions of one trial, all B x T of them; a attention heads of h = H / a components.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from orch.models.config import Vocabulary
from orch.models.network import Network as StackedNetwork
from orch.models.network import State, parameters_like_torch
from orch.models.transformer.config import Config

NORM_EPSILON = 1e-5


class Network(StackedNetwork):
    config: Config

    @classmethod
    def fresh(cls, config: Config, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        return parameters_like_torch(lambda: _gpt2(config, vocabulary), generator)

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        K, B, T = tokens_KBT.shape
        # Padding has no embedding. Any token will do, because no position that is read can see what follows [EOI].
        readable_KBT = tokens_KBT.clamp(max=self.vocabulary.readable - 1)
        first_row_K = torch.arange(K, device=tokens_KBT.device) * self.vocabulary.size
        rows_KBT = readable_KBT + first_row_K[:, None, None]
        x_KBTH = F.embedding(rows_KBT, self["transformer.wte.weight"].flatten(0, 1))
        x_KPH = (x_KBTH + self["transformer.wpe.weight"][:, None, :T]).flatten(1, 2)
        for layer in range(self.config.layers - 1):
            x_KPH = x_KPH + self._attend(layer, x_KPH, (K * B, T))
            x_KPH = x_KPH + self._think(layer, x_KPH)
        last_block = self._last_block_at_places if end_KB.dim() > 2 else self._last_block
        x_KBH = last_block(x_KPH, end_KB, T)
        return self.logits(_tied, self._norm("ln_f", x_KBH), self["transformer.wte.weight"])

    def _attend(self, layer: int, x_KPH: Tensor, shape: tuple[int, int]) -> Tensor:
        """Return what causal self-attention adds at every position of (K x B) sequences of T tokens."""
        block = f"h.{layer}"
        parts = self._linear(f"{block}.attn.c_attn", self._norm(f"{block}.ln_1", x_KPH)).chunk(3, dim=-1)
        query, key, value = (self._by_head(part, shape) for part in parts)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self._linear(f"{block}.attn.c_proj", mixed.transpose(1, 2).reshape_as(x_KPH))

    def _last_block(self, x_KPH: Tensor, end_KB: Tensor, T: int) -> Tensor:
        """Return the last block's output at the positions `end_KB`, which see all positions before them."""
        (K, B), H, block = end_KB.shape, self.config.width, f"h.{self.config.layers - 1}"
        end_N = end_KB.reshape(-1)
        starts_N = torch.arange(K * B, device=end_N.device) * T
        x_KBH = x_KPH.reshape(-1, H).index_select(0, starts_N + end_N).view(K, B, H)
        weight_KHG, bias_KG = (self[f"transformer.{block}.attn.c_attn.{name}"] for name in ("weight", "bias"))
        query_KBH = _product(self._norm(f"{block}.ln_1", x_KBH), weight_KHG[..., :H], bias_KG[:, :H])
        seen_KPG = _product(self._norm(f"{block}.ln_1", x_KPH), weight_KHG[..., H:], bias_KG[:, H:])
        query, (key, value) = (
            self._by_head(query_KBH, (K * B, 1)),
            (self._by_head(part, (K * B, T)) for part in seen_KPG.chunk(2, dim=-1)),
        )
        visible_NT = torch.arange(T, device=end_N.device) <= end_N[:, None]
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=visible_NT[:, None, None])
        x_KBH = x_KBH + self._linear(f"{block}.attn.c_proj", mixed.reshape(K, B, H))
        return x_KBH + self._think(self.config.layers - 1, x_KBH)

    def _last_block_at_places(self, x_KPH: Tensor, end_KBP: Tensor, T: int) -> Tensor:
        """Return the last block's output at several positions of each sample, one sample after the other."""
        (K, B, _), H, last = end_KBP.shape, self.config.width, self.config.layers - 1
        x_KPH = x_KPH + self._attend(last, x_KPH, (K * B, T))
        starts_KB1 = torch.arange(K * B, device=end_KBP.device).view(K, B, 1) * T
        x_KNH = x_KPH.reshape(-1, H).index_select(0, (starts_KB1 + end_KBP).reshape(-1)).view(K, -1, H)
        return x_KNH + self._think(last, x_KNH)

    def _think(self, layer: int, x_KPH: Tensor) -> Tensor:
        """Return what the perceptron of a block adds."""
        inner = self._linear(f"h.{layer}.mlp.c_fc", self._norm(f"h.{layer}.ln_2", x_KPH))
        return self._linear(f"h.{layer}.mlp.c_proj", F.gelu(inner, approximate="tanh"))

    def _norm(self, name: str, x_KPH: Tensor) -> Tensor:
        weight_KH, bias_KH = (self[f"transformer.{name}.{part}"] for part in ("weight", "bias"))
        normed = F.layer_norm(x_KPH, x_KPH.shape[-1:], eps=NORM_EPSILON)
        return torch.addcmul(bias_KH[:, None], normed, weight_KH[:, None])

    def _linear(self, name: str, x_KPH: Tensor) -> Tensor:
        return _product(x_KPH, self[f"transformer.{name}.weight"], self[f"transformer.{name}.bias"])

    def _by_head(self, x_KPH: Tensor, shape: Sequence[int]) -> Tensor:
        """Return (K x B, heads, T, components of a head)."""
        return x_KPH.reshape(*shape, self.config.heads, -1).transpose(1, 2)


def _tied(x_KBH: Tensor, E_KVH: Tensor) -> Tensor:
    return torch.bmm(x_KBH, E_KVH.mT)


def _product(x_KPH: Tensor, weight_KHG: Tensor, bias_KG: Tensor) -> Tensor:
    return torch.baddbmm(bias_KG[:, None], x_KPH, weight_KHG)


def _gpt2(config: Config, vocabulary: Vocabulary) -> Any:
    """Make the module of one trial, for its initial parameters."""
    from transformers import GPT2Config, GPT2LMHeadModel

    settings = GPT2Config(
        vocab_size=vocabulary.size,
        n_positions=config.positions,
        n_embd=config.width,
        n_layer=config.layers,
        n_head=config.heads,
        bos_token_id=None,
        eos_token_id=None,
    )
    return cast(Callable[[GPT2Config], Any], GPT2LMHeadModel)(settings)
