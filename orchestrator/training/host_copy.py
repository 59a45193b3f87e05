"""Copies of a pack in training in the host's memory, so that a checkpoint is written while training goes on."""

import functools
from collections.abc import Sequence

import torch
from torch import Tensor

from orch.training.snapshot import Snapshot


class HostCopy:
    """Memory for one copy of a pack, used again by the next copy: getting it takes ten times as long as filling it."""

    def __init__(self) -> None:
        self._memory: dict[tuple[str, str, str], Tensor] = {}
        self._stream: torch.cuda.Stream | None = None

    def take(self, views: Sequence[Snapshot]) -> "Copied":
        """Copy trials, given as `Training.view` returns them, over those that were copied before.

        They are copied as they are after the last step that was started. On a GPU this returns at once.
        """
        trial_ids = {view.trial.id for view in views}
        self._memory = {key: memory for key, memory in self._memory.items() if key[0] in trial_ids}
        to_fill: list[tuple[Tensor, Tensor]] = []

        def place(trial_id: str, kind: str, name: str, tensor: Tensor) -> Tensor:
            key = trial_id, kind, name
            memory = self._memory.get(key)
            if memory is None or memory.shape != tensor.shape or memory.dtype != tensor.dtype:
                memory = self._memory[key] = _empty(tensor)
            to_fill.append((memory, tensor))
            return memory

        copies = [view.map_tensors(functools.partial(place, view.trial.id)) for view in views]
        return Copied(copies, self._fill(to_fill))

    def _fill(self, to_fill: list[tuple[Tensor, Tensor]]) -> "torch.cuda.Event | None":
        device = next((tensor.device for _, tensor in to_fill if tensor.device.type == "cuda"), None)
        if device is None:
            _copy(to_fill)
            return None
        if self._stream is None:
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        training = torch.cuda.current_stream(device)
        # The copy waits for the steps before it, replayed ones too, and the steps after it wait for the copy: it is of
        # one step. The host waits for neither.
        self._stream.wait_stream(training)
        with torch.cuda.stream(self._stream):
            _copy(to_fill)
            copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            copied.record()
        training.wait_event(copied)
        return copied


class Copied:
    """Trials in the host's memory, until the next copy is taken."""

    def __init__(self, snapshots: list[Snapshot], copied: "torch.cuda.Event | None"):
        self._snapshots, self._copied = snapshots, copied

    def wait(self) -> list[Snapshot]:
        """Wait until the copy is complete, and return it. Other threads go on meanwhile."""
        if self._copied is not None:
            self._copied.synchronize()
        return self._snapshots


def _empty(tensor: Tensor) -> Tensor:
    """Return memory for a copy of a tensor. Only pages that stay where they are can be filled by a GPU by itself."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.device.type == "cuda")


def _copy(to_fill: list[tuple[Tensor, Tensor]]) -> None:
    for memory, tensor in to_fill:
        memory.copy_(tensor, non_blocking=True)
