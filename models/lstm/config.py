"""Settings of the LSTM."""

from dataclasses import dataclass

from orch.models.config import TokenRNNConfig
from orch.models.look import Look


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(TokenRNNConfig):
    name = "lstm"
    revision = 2
    packs_across_cells = True
    compiled_from = 128
    num_gates = 4
    about = "gated recurrence, torch.nn.LSTM's parameters"
    title = "LSTM"
    looks = {"": Look("#CC79A7", "P")}
