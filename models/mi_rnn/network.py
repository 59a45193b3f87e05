"""RNN with multiplicative integration: Wu et al. (2016, arXiv:1606.06630).

    h_t = tanh(α ∘ W x_t ∘ U h_{t-1} + β₁ ∘ U h_{t-1} + β₂ ∘ W x_t + b), from h = 0;    logits = V h + c

The factor of U h and the rest depend on the token alone: each is computed once per token and looked up.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from orch.models.config import Vocabulary
from orch.models.mi_rnn.config import Config
from orch.models.network import Network as StackedNetwork
from orch.models.network import State, normal, uniform
from orch.models.residual.network import at_end, pad_rows

INITIAL_SCALES = {"product_scale": 1.0, "recurrent_scale": 0.5, "input_scale": 0.5, "bias": 0.0}
"""α, β₁, β₂ and b at first, of which the paper tries several."""


class Network(StackedNetwork):
    config: Config

    @classmethod
    def fresh(cls, config: Config, vocabulary: Vocabulary, generator: torch.Generator) -> State:
        def draw(name: str, shape: tuple[int, ...]) -> Tensor:
            if name in INITIAL_SCALES:
                return torch.full(shape, INITIAL_SCALES[name])
            if name == "embedding":
                return normal(shape, 1.0, generator)
            return uniform(shape, 1 / math.sqrt(config.width), generator)

        return {name: draw(name, shape) for name, shape in config.shapes(vocabulary).items()}

    def forward(self, tokens_KBT: Tensor, end_KB: Tensor) -> Tensor:
        K, B, _ = tokens_KBT.shape
        # Padding has no embedding. Any token will do, because no state that is read has seen what follows [EOI].
        readable_KTB = tokens_KBT.mT.clamp(max=self.vocabulary.readable - 1)
        input_KVH = torch.bmm(pad_rows(self["embedding"]), self["input"].mT)
        first_row_K = torch.arange(K, device=tokens_KBT.device) * input_KVH.shape[1]
        factor_KVH = input_KVH * self["product_scale"][:, None] + self["recurrent_scale"][:, None]
        additive_KVH = input_KVH * self["input_scale"][:, None] + self["bias"][:, None]
        table_NG = torch.cat([factor_KVH, additive_KVH], dim=-1).flatten(0, 1)
        read_KTBG = F.embedding(readable_KTB + first_row_K[:, None, None], table_NG)
        h_KBH, states = input_KVH.new_zeros(K, B, self.config.width), []
        for read_KBG in read_KTBG.unbind(1):
            factor_KBH, additive_KBH = read_KBG.chunk(2, dim=-1)
            h_KBH = torch.tanh(factor_KBH * torch.bmm(h_KBH, self["recurrent"].mT) + additive_KBH)
            states.append(h_KBH)
        return self.head(at_end(torch.stack(states, dim=1), end_KB))
