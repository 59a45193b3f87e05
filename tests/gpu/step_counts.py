"""Counts of a step on fake tensors, kernel by kernel: bytes that it reads and writes, operations, and least seconds."""

from collections.abc import Collection
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from orch.planning.step_time import A100


class StepCounts(TorchDispatchMode):
    """Adds up what every kernel takes, each at the assumed rates of an A100."""

    def __init__(self, no_kernel: Collection[str]) -> None:
        super().__init__()
        self._no_kernel = no_kernel
        self.launches = self.moved = 0
        self.seconds = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ not in self._no_kernel:
            moved = _bytes_moved(func, args, kwargs or {}, result)
            count = flop_registry.get(func.overloadpacket)
            operations = count(*args, **(kwargs or {}), out_val=result) if count else 0
            rate = A100.cached_bytes_per_second if moved < A100.cache else A100.bytes_per_second
            self.launches += 1
            self.moved += moved
            self.seconds += max(A100.seconds_per_launch, moved / rate, operations / A100.operations_per_second)
        return result


def _bytes_moved(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    """Return the bytes of all arguments and results; what is changed in place is read and written."""
    moved, seen = 0, set()
    for place, argument in enumerate(func._schema.arguments):
        value = args[place] if place < len(args) else kwargs.get(argument.name)
        changed = argument.alias_info is not None and argument.alias_info.is_write and argument.name != "out"
        for leaf in tree_leaves(value):
            if isinstance(leaf, Tensor):
                seen.add(leaf.untyped_storage()._cdata)
                moved += _size(leaf) * (2 if changed else 1)
    for leaf in tree_leaves(result):
        if isinstance(leaf, Tensor) and leaf.untyped_storage()._cdata not in seen:
            moved += _size(leaf)
    return moved


def _size(tensor: Tensor) -> int:
    """Return the bytes that a tensor has in memory: those of an expanded one only once."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())
