"""A recording of a step's operations that is replayed on a CPU, as a CUDA graph replays kernels.

It repeats the same operations on the same memory, whatever Python would do the second time. So a step that depends on
anything but the contents of tensors, such as a number that the host counts, goes wrong when it is replayed.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from orch.training.capture import StepFunction

_ONLY_MEMORY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}


class Operations:
    """A recorder, like `CudaGraphs`."""

    def __init__(self) -> None:
        self.num_recorded = 0

    def warm_up(self, step: StepFunction) -> None:
        step()

    def record(self, step: StepFunction) -> StepFunction:
        self.num_recorded += 1
        tape = _Tape()
        with tape:
            step()
        tape.undo()
        return tape.replay


def trace(step: StepFunction) -> list[str]:
    """Return the operations of a step, each with its numbers and with the shapes of its tensors."""
    found = []

    class Trace(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            described = tree_map_only(Tensor, lambda tensor: (tensor.dtype, *tensor.shape), (args, kwargs))
            found.append(f"{func}{described}")
            return func(*args, **kwargs)

    with Trace():
        step()
    return found


class _Tape(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self._calls: list[tuple[Any, Any, Any, list[Tensor]]] = []
        self._before: dict[int, tuple[Tensor, Tensor]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for tensor in tree_leaves((args, kwargs)):
            if isinstance(tensor, Tensor):
                # A copy of everything as it was before the step first touched it, for `undo`.
                storage = tensor.untyped_storage()
                self._before.setdefault(storage.data_ptr(), (storage, storage.clone()))  # type: ignore[arg-type]
        result = func(*args, **kwargs)
        # A call's arguments are detached, because replaying must not build a graph for autograd.
        args, kwargs = tree_map_only(Tensor, Tensor.detach, (args, kwargs))
        outputs = [leaf.detach() for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        if func.overloadpacket.__name__ not in _ONLY_MEMORY and not func.is_view:
            self._calls.append((func, args, kwargs, outputs))
        return result

    def undo(self) -> None:
        """Restore the memory that the recorded step changed: recording a CUDA graph runs nothing."""
        for storage, before in self._before.values():
            storage.copy_(before)
        self._before.clear()

    @torch.no_grad()
    def replay(self) -> None:
        for func, args, kwargs, outputs in self._calls:
            again = [leaf for leaf in tree_leaves(func(*args, **kwargs)) if isinstance(leaf, Tensor)]
            for place, value in zip(outputs, again, strict=True):
                if place.data_ptr() != value.data_ptr():
                    place.copy_(value)
