"""Mamba on a GPU: the network of `mamba/network.py` in few launches, with the kernels of this package.

Beside its kernels it differs from its twin in where products are computed. Whatever depends on a token alone is
computed once per token and looked up by a product with zeros and ones, whose gradient sums by token in a fixed order.
A block computes its gate z together with u, except for the last, which needs z only at [EOI]. Shapes as in that file.
"""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from orch.models.autograd import apply_function
from orch.models.gpu_kernels.convolution import convolve
from orch.models.gpu_kernels.rms_norm import rms_norm
from orch.models.gpu_kernels.selective_scan import mix
from orch.models.recurrence.token_lookup import one_hot


def answer(
    parameter: Callable[[str], Tensor], num_layers: int, epsilon: float, tokens_KBT: Tensor, end_KB: Tensor
) -> Tensor:
    """Return the logits at each sample's end. `parameter` returns one by its name; `epsilon` is that of the norms."""
    K, B, T = tokens_KBT.shape
    E_KVH = parameter("backbone.embeddings.weight")
    # What padding is looked up as does not matter, because a causal model cannot see what follows [EOI].
    which_KVP = one_hot(tokens_KBT, E_KVH.shape[1], E_KVH.dtype).flatten(2)
    # The place of each sample's [EOI] among all positions of its trial.
    place_KB = end_KB * B + torch.arange(B, device=end_KB.device)
    which_end_KVB = which_KVP.gather(2, place_KB[:, None].expand(-1, E_KVH.shape[1], -1))
    x_KPH = E_KVH
    for layer in range(num_layers):
        first, last = layer == 0, layer == num_layers - 1

        def of(name: str, layer: int = layer) -> Tensor:
            return parameter(f"backbone.layers.{layer}.{name}")

        normed, entrance = rms_norm(x_KPH, of("norm.weight"), epsilon), of("mixer.in_proj.weight")
        if not last:
            if first:
                x_KPH = look_up(E_KVH, which_KVP)
            both = linear(entrance, normed)
            u, z = torch.unflatten(look_up(both, which_KVP) if first else both, 1, (T, B)).chunk(2, dim=-1)
        else:
            if not first:
                rows = (place_KB + B * T * torch.arange(K, device=end_KB.device)[:, None]).flatten()
                x_KPH = x_KPH.flatten(0, 1).index_select(0, rows).view(K, B, -1)
            at_end = normed if first else rms_norm(x_KPH, of("norm.weight"), epsilon)
            u, z = enter(entrance, normed, at_end)
            if first:
                x_KPH, u, z = look_up(E_KVH, which_end_KVB), look_up(u, which_KVP), look_up(z, which_end_KVB)
            u = torch.unflatten(u, 1, (T, B))
        x_KTBI = convolve(u, of("mixer.conv1d.weight"), of("mixer.conv1d.bias"))
        into_KQI, step_KIr, bias_KI = (
            of(f"mixer.{name}") for name in ("x_proj.weight", "dt_proj.weight", "dt_proj.bias")
        )
        A_log_KIN, D_KI = of("mixer.A_log"), of("mixer.D")
        y = mix(x_KTBI, into_KQI, step_KIr, bias_KI, A_log_KIN, D_KI, z, end_KB if last else None)
        x_KPH = linear(of("mixer.out_proj.weight"), y if last else y.flatten(1, 2), x_KPH)
    return linear(E_KVH, rms_norm(x_KPH, parameter("backbone.norm_f.weight"), epsilon))


def linear(weight_KOD: Tensor, x_KPD: Tensor, plus_KPO: Tensor | None = None) -> Tensor:
    """Multiply each row with a trial's weight, and add to it: (K, P, O)."""
    return apply_function(_Linear, weight_KOD, x_KPD, plus_KPO)


def enter(weight_KOD: Tensor, *inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Multiply the first input with the first half of a weight, and the second with the second."""
    return cast(Callable[..., tuple[Tensor, Tensor]], _Entrance.apply)(weight_KOD, *inputs)


def look_up(table_KVD: Tensor, which_KVP: Tensor) -> Tensor:
    """Return the rows of a table by `one_hot`: (K, P, D)."""
    return apply_function(_LookUp, table_KVD, which_KVP)


class _Linear(torch.autograd.Function):
    """The gradient of the weight is laid out like the weight, which autograd's own would not be."""

    @staticmethod
    def forward(ctx: Any, weight_KOD: Tensor, x_KPD: Tensor, plus_KPO: Tensor | None) -> Tensor:
        ctx.save_for_backward(weight_KOD, x_KPD)
        product = (x_KPD, weight_KOD.mT)
        return torch.bmm(*product) if plus_KPO is None else torch.baddbmm(plus_KPO, *product)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KPO: Tensor) -> tuple[Tensor | None, ...]:
        weight_KOD, x_KPD = ctx.saved_tensors
        g_plus_KPO = g_KPO if ctx.needs_input_grad[2] else None
        return torch.bmm(g_KPO.mT, x_KPD), torch.bmm(g_KPO, weight_KOD), g_plus_KPO


class _Entrance(torch.autograd.Function):
    """Two products, one with each half of a weight, whose gradient is written half by half."""

    @staticmethod
    def forward(ctx: Any, weight_KOD: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.save_for_backward(weight_KOD, *inputs)
        halves = weight_KOD.chunk(2, dim=1)
        return tuple(torch.bmm(x_KPD, half.mT) for x_KPD, half in zip(inputs, halves, strict=True))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        weight_KOD, *inputs = ctx.saved_tensors
        g_weight = torch.empty_like(weight_KOD)
        for g_KPO, x_KPD, half in zip(gradients, inputs, g_weight.chunk(2, dim=1), strict=True):
            torch.bmm(g_KPO.mT, x_KPD, out=half)
        halves = weight_KOD.chunk(2, dim=1)
        return g_weight, *(torch.bmm(g_KPO, half) for g_KPO, half in zip(gradients, halves, strict=True))


class _LookUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table_KVD: Tensor, which_KVP: Tensor) -> Tensor:
        ctx.save_for_backward(which_KVP)
        return torch.bmm(which_KVP.mT, table_KVD)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g_KPD: Tensor) -> tuple[Tensor | None, ...]:
        (which_KVP,) = ctx.saved_tensors
        return torch.bmm(which_KVP, g_KPD), None
