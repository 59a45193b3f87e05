"""Losses and gradients in double precision on the CPU, from the weights of a network on any device."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from orch.models.network import Network, PerTrial
from orch.running.doctor.agreement import Computed
from orch.running.doctor.rounding import Rounding, find_scales, size
from orch.training.gradients import loss_and_gradients

_CHANGE = 1e-7
"""Relative change of the weights by which the condition of gradients is measured."""


class Reference(NamedTuple):
    """The exact loss and gradients of a trial, and how far those of single precision may be off."""

    exact: Computed
    rounding: Rounding


def references(network: Network, batch: Sequence[Tensor]) -> list[Reference]:
    """Return the reference of each trial."""
    on_host = [part.cpu() for part in batch]
    exact = in_double(network)
    found = compute(exact, on_host)
    _change_weights(exact)
    changed = compute(exact, on_host)
    return [
        Reference(one, _rounding(one, other, on_host[0].shape[2])) for one, other in zip(found, changed, strict=True)
    ]


def in_double(network: Network) -> Network:
    """Return a copy on the CPU, in double precision, with the plain kernel."""
    members = [network.member(position) for position in range(network.num_trials)]
    on_host = [{name: tensor.cpu() for name, tensor in member.items()} for member in members]
    exact = type(network)(network.config, network.vocabulary, on_host).double()
    exact.noise_seed = network.noise_seed
    if network[network.names[0]].device.type != "cpu":
        leave_out_dropout(exact)
    return exact


def compute(network: Network, batch: Sequence[Tensor]) -> list[Computed]:
    """Return the loss and the gradients of each trial, as training computes them."""
    tokens_KBT, end_KB, target_KB = batch
    loss_K, gradients = loss_and_gradients(network, tokens_KBT, end_KB, target_KB)
    stacked = {
        name: gradient if isinstance(gradient, Tensor) else gradient.written_out().view_as(network[name])
        for name, gradient in gradients.items()
    }
    # Copies, because a network may use the memory of its gradients again.
    return [
        Computed(loss, {name: gradient[position].to("cpu", copy=True) for name, gradient in stacked.items()})
        for position, loss in enumerate(loss_K.tolist())
    ]


def leave_out_dropout(network: Network) -> None:
    """Turn dropout off in a user's module: a GPU draws other random numbers than a CPU."""
    if not isinstance(network, PerTrial):
        return
    for module in network.wrapped.module.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
        elif isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
            module.dropout = 0.0


@torch.no_grad()
def _change_weights(network: Network) -> None:
    generator = torch.Generator().manual_seed(0)
    for name in network.names:
        weight = network[name]
        if weight.is_floating_point():
            change = torch.rand(weight.shape, generator=generator, dtype=weight.dtype).mul_(2).sub_(1)
            weight.mul_(change.mul_(_CHANGE).add_(1))


def _rounding(exact: Computed, changed: Computed, num_tokens: int) -> Rounding:
    scales = find_scales(exact.gradients)
    conditions = {
        name: size(changed.gradients[name] - gradient) / scales[name] / _CHANGE
        for name, gradient in exact.gradients.items()
    }
    return Rounding(num_tokens, scales, conditions)
