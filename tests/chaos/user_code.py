"""A user's own model that behaves well when it is tried, and badly once it is trained on a worker."""

import textwrap

from tests.chaos.harness import Round

SWEEP = '''
"""A model that {how}."""

import os
import subprocess
import sys
import time

import orch
import torch
from torch import nn

HOARD = []


def misbehave():
    if "ray" in sys.modules:
{does}


@orch.model
class Misbehaving(nn.Module):
    """Running sums, and worse."""

    def __init__(self, vocabulary, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        misbehave()
        return self.head(self.embedding(tokens).cumsum(1))


cells = orch.grid(
    models=[Misbehaving()], tasks=["modular_addition"], learning_rates=1e-3, seeds=2, steps=20, test_length=20
)
'''


def run_own(round: Round, how: str, does: str) -> None:
    """Run two trials of a model that does this in every forward pass."""
    path = round.folder / "misbehaving.py"
    path.write_text(SWEEP.format(how=how, does=textwrap.indent(textwrap.dedent(does).strip(), " " * 8)))
    round.own_models.add("misbehaving")
    round.wait(round.orch("sweep", str(path), "--cpus", "1", "--hang-seconds", "8", "--store", round.place.location))
