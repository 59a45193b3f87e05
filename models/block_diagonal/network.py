"""Block-diagonal bilinear RNN: the full model's equation within each of n independent blocks of size b (Sec. 2.2.2).

(A_x^(block))_ij = sum_k W^(block)_ijk x_k
"""

from torch import Tensor

from orch.models.bilinear_family.transition_table import TransitionTable


class Network(TransitionTable):
    def table(self, x_KRD: Tensor) -> Tensor:
        return self.token_table("recurrence.transition", x_KRD)

    @property
    def answers_faster(self) -> bool:
        b, num_blocks = self.config.state_block, self.config.width // self.config.state_block
        return num_blocks >= {1: 128, 2: 1}.get(b, 16) and b <= 8
