"""Settings of the Elman RNN."""

from dataclasses import dataclass

from orch.models.kernel import COMPILED, PLAIN, TRITON
from orch.models.look import DASHED, Look
from orch.models.step_costs import Launches
from orch.models.token_rnn.config import TokenRNNConfig
from orch.tasks.algebra import Family, Transitions


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(TokenRNNConfig):
    name = "rnn"
    revision = 2
    packs_across_cells = True
    compiled_from = 128
    gpu_kernels = True
    num_gates = 1
    about = "h' = tanh(W x + U h + b), torch.nn.RNN's parameters"
    title = "RNN"
    looks = {"": Look("#E69F00", "X", DASHED, filled=False)}
    own_learning_rates = {"atlas": (1e-3,)}
    launches = {
        PLAIN: Launches(41, per_position=13),
        COMPILED: Launches(11, per_position=2, for_each_trial=True),
        TRITON: Launches(29, per_position=4),
    }

    @property
    def transitions(self) -> Transitions:
        return Transitions(Family.NONLINEAR)
