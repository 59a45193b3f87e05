"""Devices that are not there, simulated on a CPU: a healthy one that rounds in its own way, and sick ones."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from orch.models.network import Network
from orch.models.recurrence import batch_positions, blocks, token_lookup
from orch.running.doctor import double_precision
from orch.training import train

EXACT = {
    *("clone", "copy_", "_to_copy", "cat", "stack", "index_select", "gather", "embedding", "constant_pad_nd", "flip"),
    *("zeros", "zeros_like", "new_zeros", "zero_", "ones", "ones_like", "full", "full_like", "fill_", "eye", "repeat"),
    *("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "normal_", "uniform_", "arange"),
    *("slice_backward", "select_backward", "index_copy_", "where", "index", "neg", "_unsafe_view", "lift_fresh"),
}
"""Operations that move numbers or make memory: every device returns the same bits."""
ULPS = 2
PRODUCTS = {"mm", "bmm", "addmm", "baddbmm", "baddbmm_"}


class Healthy(TorchDispatchMode):
    """Changes every result of single precision by up to two units in the last place.

    Sums in another order, fused multiply-adds and other exponentials differ by no more than that per operation.
    """

    def __init__(self) -> None:
        super().__init__()
        self.num_changed = 0
        self._generator = torch.Generator().manual_seed(0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name == "_fused_adam_":
            parameters, _, first, second, *_ = args
            self._change([*parameters, *first, *second])
        elif not func.is_view and name not in EXACT:
            self._change(tree_leaves(result))
        return result

    def _change(self, tensors: list[Any]) -> None:
        for tensor in tensors:
            # Single numbers are left alone: Adam counts steps in one, and every device counts exactly.
            if isinstance(tensor, Tensor) and tensor.dtype == torch.float32 and tensor.dim() > 0:
                self.num_changed += 1
                noise = torch.rand(tensor.shape, generator=self._generator).mul_(2).sub_(1)
                tensor.detach().mul_(noise.mul_(ULPS * 2.0**-23).add_(1))


class FewDigits(TorchDispatchMode):
    """Rounds the factors of matrix products to the ten bits of TF32."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in PRODUCTS:
            own, factors = args[:-2], args[-2:]
            args = (*own, *tree_map_only(Tensor, _round, factors))
        return func(*args, **(kwargs or {}))


def _round(tensor: Tensor) -> Tensor:
    if tensor.dtype != torch.float32:
        return tensor
    bits = tensor.contiguous().view(torch.int32)
    return ((bits + (1 << 12)) & ~((1 << 13) - 1)).view(torch.float32)


@contextmanager
def code_for_gpus(monkeypatch: Any) -> Iterator[None]:
    """Run the code that runs on a GPU: plain kernels that read no sizes."""
    with monkeypatch.context() as patch:
        patch.setenv("ORCH_KERNEL", "plain")
        for module in (blocks, batch_positions, token_lookup):
            patch.setattr(module, "on_host", lambda tensor: False)
        yield


Inputs = tuple[Tensor, Tensor, Tensor]
Fault = Callable[[Network, Inputs, Callable[..., Any]], Any]


@contextmanager
def sick(fault: Fault) -> Iterator[None]:
    """Compute losses and gradients of single precision with a fault."""
    right = train.loss_and_gradients

    def compute(network: Network, *batch: Tensor) -> Any:
        if network[network.names[0]].dtype == torch.float64:
            return right(network, *batch)
        return fault(network, batch, right)

    with (
        mock.patch.object(train, "loss_and_gradients", compute),
        mock.patch.object(double_precision, "loss_and_gradients", compute),
    ):
        yield


def written_out(network: Network, gradients: dict[str, Any]) -> dict[str, Tensor]:
    return {
        name: (each if isinstance(each, Tensor) else each.written_out().view_as(network[name])).clone()
        for name, each in gradients.items()
    }


def scaled_gradient(parameter: str, factor: float = 1.01, trial: int = 0, from_size: int = 1) -> Fault:
    """Scale the gradient of one parameter of one trial, in packs of at least a certain size."""

    def fault(network: Network, batch: Inputs, right: Callable[..., Any]) -> Any:
        loss_K, gradients = right(network, *batch)
        if network.num_trials >= from_size:
            gradients = written_out(network, gradients)
            gradients[parameter][trial] *= factor
        return loss_K, gradients

    return fault


def stale_gradient(parameter: str) -> Fault:
    """Return the gradient of the batch before in place of one parameter's."""
    before: dict[int, Tensor] = {}

    def fault(network: Network, batch: Inputs, right: Callable[..., Any]) -> Any:
        loss_K, gradients = right(network, *batch)
        gradients = written_out(network, gradients)
        new = gradients[parameter]
        gradients[parameter], before[id(network)] = before.get(id(network), new), new
        return loss_K, gradients

    return fault


def dropped_position(network: Network, batch: Inputs, right: Callable[..., Any]) -> Any:
    """Leave out one input of one sample."""
    tokens_KBT, end_KB, target_KB = (part.clone() for part in batch)
    tokens_KBT[0, 0, 1:-1] = batch[0][0, 0, 2:].clone()
    tokens_KBT[0, 0, -1] = network.vocabulary.readable
    end_KB[0, 0] -= 1
    return right(network, tokens_KBT, end_KB, target_KB)


def wrong_mask(network: Network, batch: Inputs, right: Callable[..., Any]) -> Any:
    """Take the padding after one short sample for part of it."""
    tokens_KBT, end_KB, target_KB = (part.clone() for part in batch)
    sample = int(end_KB[0].argmin())
    end_KB[0, sample] += 1
    tokens_KBT[0, sample, end_KB[0, sample]] = 0
    return right(network, tokens_KBT, end_KB, target_KB)
