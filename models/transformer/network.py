"""Transformer: GPT-2 (Radford et al., 2019), as `transformers` implements it.

x' = x + attention(norm(x));   x'' = x' + mlp(norm(x'));   logits = E norm(x'')   with E the tied embedding
"""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn

from orch.models.config import Vocabulary
from orch.models.network import PerTrial
from orch.models.transformer.config import Config


def _causal(tokens_BT: Tensor) -> Tensor:
    """Return the causal mask. If transformers had to derive it, it would wait for the device."""
    T = tokens_BT.shape[1]
    return torch.ones(1, 1, T, T, dtype=torch.bool, device=tokens_BT.device).tril()


class _GPT2(nn.Module):
    def __init__(self, config: Config, vocabulary: Vocabulary):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        settings = GPT2Config(
            vocab_size=vocabulary.size,
            n_positions=config.positions,
            n_embd=config.width,
            n_layer=config.layers,
            n_head=config.heads,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            activation_function="gelu_pytorch_tanh",  # GPT-2's own in one call, where its usual form takes eight
            use_cache=False,
            bos_token_id=None,
            eos_token_id=None,
        )
        body = cast(Callable[[GPT2Config], Any], GPT2LMHeadModel)(settings)
        self.transformer, self.lm_head = body.transformer, body.lm_head

    def forward(self, tokens_BT: Tensor, end_B: Tensor) -> Tensor:
        hidden_BTD = self.transformer(input_ids=tokens_BT, attention_mask=_causal(tokens_BT)).last_hidden_state
        rows_B = torch.arange(len(end_B), device=end_B.device)
        return nn.functional.linear(hidden_BTD[rows_B, end_B], self.transformer.wte.weight)


class Network(PerTrial):
    may_stack = False  # a stack rounds differently: recorded results and golden values would change

    @classmethod
    def skeleton(cls, config: Config, vocabulary: Vocabulary) -> nn.Module:
        return _GPT2(config, vocabulary)
