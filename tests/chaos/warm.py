"""Imports and loads all that training takes, once, in the server from which plain processes are forked.

Machine code alone takes a process seconds to load, which is more than its twenty trials.
"""

import os

import torch

from orch.training.train import Training
from tests.chaos import plain  # noqa: F401 — what every process needs
from tests.chaos.planned import planned

SERVER = "ORCH_CHAOS_SERVER"
"""The variable that is set for that server only."""

if SERVER in os.environ:
    torch.set_num_threads(1)
    for trial in {each.trial.model.name: each.trial for each in planned()}.values():
        Training([trial]).advance()
