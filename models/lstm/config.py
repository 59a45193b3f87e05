"""Settings of the LSTM."""

from dataclasses import dataclass

from orch.models.kernel import COMPILED, PLAIN, TRITON
from orch.models.look import Look
from orch.models.step_costs import Launches
from orch.models.token_rnn.config import TokenRNNConfig
from orch.tasks.algebra import Family, Transitions


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(TokenRNNConfig):
    name = "lstm"
    revision = 2
    packs_across_cells = True
    compiled_from = 128
    gpu_kernels = True
    num_gates = 4
    about = "gated recurrence, torch.nn.LSTM's parameters"
    title = "LSTM"
    looks = {"": Look("#CC79A7", "P")}
    launches = {
        PLAIN: Launches(46, per_position=28),
        COMPILED: Launches(11, per_position=2, for_each_trial=True),
        TRITON: Launches(29, per_position=4),
    }

    @property
    def transitions(self) -> Transitions:
        return Transitions(Family.NONLINEAR)
