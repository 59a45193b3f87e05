"""Gated DeltaNet: Yang, Kautz and Hatamizadeh (2025, arXiv:2412.06464).

    S_t = α_t S_{t-1} (I - β_t k_t k_tᵀ) + β_t v_t k_tᵀ;    o_t = S_t q_t;    W_o (norm(o) ∘ silu(W_g x))
    α = exp(-e^A softplus(w·x + b)), one for each head

The rest is DeltaNet: see `orch.models.delta_net.network`.
"""

from orch.models.delta_net.network import GatedNetwork


class Network(GatedNetwork):
    """DeltaNet whose state decays and whose output is gated."""
