"""Ordinary modules, as users write them, wrapped by `orch.model`."""

from typing import Any

import torch
from torch import nn

import orch
from orch.sweeps.definitions import BUILT_IN_DEFINITIONS, Definitions
from orch.sweeps.trial import Trial


@orch.model
class Masked(nn.Module):
    """A mean of what came before, with a mask that is not saved, a plain tensor, and a count that is."""

    def __init__(self, vocabulary, width=16, positions=64):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.head = nn.Linear(width, vocabulary)
        mask = torch.ones(positions, positions).tril()
        self.register_buffer("mask", mask / mask.sum(1, keepdim=True), persistent=False)
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.shift = torch.linspace(-1, 1, width)

    def forward(self, tokens):
        T = tokens.shape[1]
        if self.training:
            self.steps += 1
            self.scale = 0.9 * self.scale + 0.1 * self.embedding.weight.detach().std()
        return self.head(torch.tanh(self.mask[:T, :T] @ self.embedding(tokens) / self.scale + self.shift))


@orch.model
class Normalised(nn.Module):
    """Sums of embeddings with BatchNorm."""

    def __init__(self, vocabulary, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.norm = nn.BatchNorm1d(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        sums = self.embedding(tokens).cumsum(1)
        return self.head(torch.relu(self.norm(sums.transpose(1, 2)).transpose(1, 2)))


@orch.model
class Tied(nn.Module):
    """A head that is the embedding."""

    def __init__(self, vocabulary, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.mix(self.embedding(tokens).cumsum(1))))


@orch.model
class Noisy(nn.Module):
    """Sums of embeddings with dropout."""

    def __init__(self, vocabulary, width=16, dropout=0.2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.dropout(torch.tanh(self.embedding(tokens).cumsum(1))))


@orch.model
class Recurrent(nn.Module):
    """torch's LSTM."""

    def __init__(self, vocabulary, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layer = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.layer(self.embedding(tokens))[0])


@orch.model
class Gated(nn.Module):
    """A gated recurrence that is told where samples end: many small operations, which a stack shares."""

    def __init__(self, vocabulary, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.gate, self.value = nn.Linear(width, width), nn.Linear(width, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens, ends):
        x = self.embedding.weight
        gate, value = torch.tanh(self.gate(x)), self.value(x)
        h = torch.zeros(len(tokens), x.shape[1], device=x.device)
        for position, token in enumerate(tokens.unbind(1)):
            f = gate[token]
            h = torch.where((position <= ends)[:, None], f * h + (1 - f.abs()) * value[token], h)
        return self.head(h)


MODELS = {each.name: each for each in (Masked, Normalised, Tied, Noisy, Recurrent, Gated)}
for each in MODELS.values():
    each.revision = 1


def trial_of(model: type[Any], **settings: Any) -> Trial:
    """Make a small trial of a model that is not registered."""
    definitions = Definitions({**BUILT_IN_DEFINITIONS.models, model.name: model}, BUILT_IN_DEFINITIONS.tasks)
    small = {"steps": 50, "eval_every": 25, "validation_samples": 100, "test_samples": 50, "curve_lengths": (10,)}
    defaults = small | {"batch_size": 32, "test_length": 20, "learning_rate": 1e-2}
    return orch.make_trial("modular_addition", model.name, definitions, **(defaults | settings))
