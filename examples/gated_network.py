"""A gated diagonal recurrence, in the spirit of minGRU (Feng et al., 2024), with gates that may be negative.

h' = f(x) h + (1 - |f(x)|) v(x), elementwise; f is a sigmoid or, signed, a tanh of a linear map of the embedding x.

Shapes: B samples, T tokens, V vocabulary, H width.
"""

import torch
from torch import nn

from orch.models.network import PerTrial


class Gated(nn.Module):
    def __init__(self, config, vocabulary):
        super().__init__()
        self.squash = torch.tanh if config.gate == "signed" else torch.sigmoid
        self.embedding = nn.Embedding(vocabulary.size, config.width)
        self.gate = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)
        self.head = nn.Linear(config.width, vocabulary.size)

    def forward(self, tokens_BT, end_B):
        x_VH = self.embedding.weight
        f_VH, v_VH = self.squash(self.gate(x_VH)), self.value(x_VH)  # once per token, not once per position
        h_BH = torch.zeros(len(tokens_BT), x_VH.shape[1], device=x_VH.device)
        for position, token_B in enumerate(tokens_BT.unbind(1)):
            f_BH = f_VH[token_B]
            next_BH = f_BH * h_BH + (1 - f_BH.abs()) * v_VH[token_B]
            h_BH = torch.where((position <= end_B)[:, None], next_BH, h_BH)
        return self.head(h_BH)


class Network(PerTrial):
    @classmethod
    def skeleton(cls, config, vocabulary):
        return Gated(config, vocabulary)
