"""Loop over time of all bilinear recurrences: h_t = N(transition(h_{t-1}, x_t) + c(x_t))."""

from typing import Any, Protocol

import torch
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.places import add_at, states_at
from orch.models.recurrence.normalisation import Normalisation
from orch.models.recurrence.token_lookup import TokenSums, table_rows, with_padding


class Transition(Protocol):
    """A linear map of the state for each token. Padding must map a state to itself."""

    def __init__(self, tokens_KBT: Tensor, *parameters: Tensor): ...

    def forward(self, t: int, h_KBH: Tensor) -> Tensor:
        """Return the state after position t."""
        ...

    def backward(self, t: int, g_KBH: Tensor) -> Tensor:
        """Return the gradient at the state before position t, given the gradient after it."""
        ...

    def gradients(self, h_TKBH: Tensor, g_TKBH: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of the parameters, given the states before and the gradients after all positions."""
        ...


def scan(
    transition_type: type[Transition],
    normalisation: Normalisation,
    tokens_KBT: Tensor,
    h0_KH: Tensor,
    additive_KRH: Tensor | None,
    *parameters: Tensor,
    read_KBP: Tensor | None = None,
) -> Tensor:
    """Return the final states, (K, B, H), or those after the positions `read_KBP`, (K, BP, H).

    Past states are kept only if they are read or gradients are needed.
    """
    tensors = (h0_KH, *parameters) if additive_KRH is None else (h0_KH, additive_KRH, *parameters)
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        options = transition_type, normalisation, tokens_KBT, read_KBP
        return apply_function(_Scan, *options, h0_KH, additive_KRH, *parameters)
    transition = transition_type(tokens_KBT, *parameters)
    additive = None if additive_KRH is None else _Additive(tokens_KBT, additive_KRH)
    h_KBH = h0_KH[:, None].expand(-1, tokens_KBT.shape[1], -1)
    states = []
    for t in range(tokens_KBT.shape[2]):
        u_KBH = transition.forward(t, h_KBH)
        if additive is not None:
            u_KBH = u_KBH + additive.at(t)
        h_KBH, _ = normalisation.forward(u_KBH)
        if read_KBP is not None:
            states.append(h_KBH)
    return h_KBH if read_KBP is None else states_at(torch.stack(states), read_KBP)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        transition_type: type[Transition],
        normalisation: Normalisation,
        tokens_KBT: Tensor,
        read_KBP: Tensor | None,
        h0_KH: Tensor,
        additive_KRH: Tensor | None,
        *parameters: Tensor,
    ) -> Tensor:
        (K, B, T), H = tokens_KBT.shape, h0_KH.shape[1]
        transition = transition_type(tokens_KBT, *parameters)
        additive = None if additive_KRH is None else _Additive(tokens_KBT, additive_KRH)
        states_TKBH = h0_KH.new_empty(T + 1, K, B, H)
        states_TKBH[0] = h0_KH[:, None]
        scales = []
        for t in range(T):
            u_KBH = transition.forward(t, states_TKBH[t])
            if additive is not None:
                u_KBH = u_KBH + additive.at(t)
            _, scale = normalisation.forward(u_KBH, out=states_TKBH[t + 1])
            scales.append(scale)
        ctx.parts = transition, normalisation, additive, states_TKBH, scales, read_KBP
        # A copy, because the caller's tensor must not share memory with the states that backward reads.
        return states_TKBH[T].clone() if read_KBP is None else states_at(states_TKBH[1:], read_KBP)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KBH: Tensor) -> tuple[Tensor | None, ...]:
        transition, normalisation, additive, states_TKBH, scales, read_KBP = ctx.parts
        gradients_TKBH, read_TKBH = torch.empty_like(states_TKBH[1:]), None
        if read_KBP is not None:
            read_TKBH = add_at(torch.zeros_like(gradients_TKBH), read_KBP, g_KBH)
            g_KBH = torch.zeros_like(states_TKBH[0])
        for t in reversed(range(len(scales))):
            if read_TKBH is not None:
                g_KBH = g_KBH + read_TKBH[t]
            g_u = normalisation.backward(g_KBH, states_TKBH[t + 1], scales[t], out=gradients_TKBH[t])
            g_KBH = transition.backward(t, g_u)
        g_additive = None if additive is None else additive.gradient(gradients_TKBH)
        gradients = g_KBH.sum(1), g_additive, *transition.gradients(states_TKBH[:-1], gradients_TKBH)
        return None, None, None, None, *gradients


class _Additive:
    """The additive term c(x_t): one vector per token, zero for padding."""

    def __init__(self, tokens_KBT: Tensor, additive_KRH: Tensor):
        self._tokens_KBT, self._R = tokens_KBT, additive_KRH.shape[1]
        self._table = with_padding(additive_KRH)
        self._rows_TKB = table_rows(tokens_KBT, self._R + 1)

    def at(self, t: int) -> Tensor:
        return self._table[self._rows_TKB[t]]

    def gradient(self, g_TKBH: Tensor) -> Tensor:
        sums = TokenSums(self._tokens_KBT, self._R)
        sums.add(0, g_TKBH)
        return sums.total()
