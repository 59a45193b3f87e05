"""DeltaProduct: Siems et al. (2025, arXiv:2502.10297). A token's transition is a product of n reflections.

    S_{t,0} = S_{t-1,n};    S_{t,j} = S_{t,j-1} (I - β_{t,j} k_{t,j} k_{t,j}ᵀ) + β_{t,j} v_{t,j} k_{t,j}ᵀ
    o_t = S_{t,n} q_t

Each of the n has keys, values and β of its own. With n = 1 it is DeltaNet: see `orch.models.delta_net.network`.
"""

from orch.models.delta_net.network import GatedNetwork


class Network(GatedNetwork):
    """DeltaNet with several writes a token."""
