"""Transformer: GPT-2 (Radford et al., 2019), as `transformers` implements it.

    x' = x + attention(norm(x));   x'' = x' + mlp(norm(x'));   logits = E norm(x'')   with E the tied embedding
"""

from torch import Tensor, nn

from models.config import Vocabulary
from models.network import PerTrial
from models.transformer.config import Config


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
            use_cache=False,
            bos_token_id=None,
            eos_token_id=None,
        )
        body = GPT2LMHeadModel(settings)
        self.transformer, self.lm_head = body.transformer, body.lm_head

    def forward(self, tokens_BT: Tensor) -> Tensor:
        hidden = self.transformer(input_ids=tokens_BT).last_hidden_state
        return nn.functional.linear(hidden, self.transformer.wte.weight)


class Network(PerTrial):
    @classmethod
    def skeleton(cls, config: Config, vocabulary: Vocabulary) -> nn.Module:
        return _GPT2(config, vocabulary)
