"""Full bilinear RNN: Ebrahimi and Memisevic, "Revisiting Bi-Linear State Transitions in RNNs" (2025), Eq. 2.

h_i^t = sum_jk W_ijk x_k^t h_j^{t-1},   that is   h^t = A_x h^{t-1}   with   (A_x)_ij = sum_k W_ijk x_k
"""

from torch import Tensor

from orch.models.bilinear_family.transition_table import TransitionTable


class Network(TransitionTable):
    def table(self, x_KRD: Tensor) -> Tensor:
        return self.token_table("recurrence.transition", x_KRD)[..., None]
