"""Training on a GPU that is not there: fake tensors on device "cuda" have shapes and no data, and run code for GPUs.

Runs in a process of its own, because `pretend_cuda.cpp` has to be loaded before torch: see `process.py`.
"""

import contextlib
import ctypes
import dataclasses
import itertools
import os
import sys
import weakref
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

if __name__ == "__main__":
    folder = Path(str(find_spec("torch").submodule_search_locations[0])) / "lib"  # type: ignore[union-attr, index]
    for library in (folder / "libc10.so", folder / "libtorch_cpu.so", sys.argv[1]):
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)

import torch
from torch import Tensor
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from orch import tasks
from orch.models.kernel import VARIABLE
from orch.models.network import Network
from orch.planning.across_cells import padded
from orch.planning.pack_size import memory
from orch.sweeps.trial import Trial, make_trial
from orch.training import train
from orch.training.host_copy import HostCopy
from orch.training.snapshot import Snapshot
from orch.training.train import Training
from tests.gpu.process import serve
from tests.gpu.step_counts import StepCounts
from tests.training.no_recorder import TheStepItself

STATES = ("parameters", "first", "second")
NO_KERNEL = {
    *("alias", "as_strided", "detach", "empty", "empty_like", "empty_strided", "expand", "new_empty", "permute"),
    *("new_empty_strided", "select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind"),
    *("unsqueeze", "view", "_unsafe_view", "_reshape_alias", "device"),
}
"""Operations that make a view or get memory: nothing runs on a device."""


class Watch(TorchDispatchMode):
    """Counts kernels, and notes operations in which a tensor of the host takes part."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: Counter[str] = Counter()
        self.with_host: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, Tensor)]
        if any(tensor.device.type != "cuda" for tensor in tensors):
            self.with_host.append(name)
        if name not in NO_KERNEL:
            self.kernels[name] += 1
        return result


class Memory(TorchDispatchMode):
    """Follows the bytes that tensors on the device take, and their peak."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.device.type == "cuda":
                storage = leaf.untyped_storage()
                if storage._cdata not in self._known:
                    self._known.add(storage._cdata)
                    num_bytes = -(-storage.nbytes() // 512) * 512  # as CUDA's allocator rounds
                    self.now += num_bytes
                    self.peak = max(self.peak, self.now)
                    weakref.finalize(storage, self._free, storage._cdata, num_bytes)
        return result

    def _free(self, key: int, num_bytes: int) -> None:
        self._known.discard(key)
        self.now -= num_bytes


def count_step(model: str, task: str, size: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Count what a training step and a validation take: see `step_counts.py`."""
    trials = [make_trial(task, model, init_seed=seed, data_seed=seed, **settings) for seed in range(size)]
    with mock.patch.object(train, "find_recorder", return_value=TheStepItself()), FakeDevice():
        training = Training(trials, "cuda")
        training.advance(stop_at=1)
        with StepCounts(NO_KERNEL) as step:
            training._train_step()
        with StepCounts(NO_KERNEL) as validation:
            training.validation_scores()
    return {
        "kernel": training.kernel,
        "launches": step.launches,
        "moved": step.moved,
        "seconds": step.seconds,
        "validation_launches": validation.launches,
        "validation_moved": validation.moved,
    }


class FakeDevice:
    """What a fake device needs for a whole training: numbers at validations, and parameters that can move to it."""

    def __init__(self) -> None:
        self.num_reads = 0

    def __enter__(self) -> "FakeDevice":
        def read(tensor: Tensor) -> list[float]:
            """Return scores of which the first trial's is low enough to stop early."""
            self.num_reads += 1
            return [float(position > 0) for position in range(len(tensor))]

        def move(network: Network, device: torch.device) -> Network:
            """Do what `nn.Module.to` does, which cannot change fake parameters in place."""
            for name, parameter in network._parameters.items():
                assert parameter is not None
                moved = parameter.detach().to(device)
                network._parameters[name] = torch.nn.Parameter(moved, requires_grad=parameter.requires_grad)
            for name, buffer in network._buffers.items():
                network._buffers[name] = None if buffer is None else buffer.to(device)
            return network

        self._patches = contextlib.ExitStack()
        for owner, name, value in (
            (FakeTensor, "tolist", read),
            (Network, "to", move),
            (train, "majority", lambda task, num_inputs: 0.5),  # computed on the host, from numbers
        ):
            self._patches.enter_context(mock.patch.object(owner, name, value))
        self._patches.enter_context(FakeTensorMode())
        return self

    def __exit__(self, *error: Any) -> None:
        self._patches.close()


def make_trials(model: str, task: str, size: int, settings: dict[str, Any]) -> list[Trial]:
    short = {"steps": 4, "eval_every": 3, "test_length": 20, "curve_lengths": (20,)}
    task_type = tasks.REGISTRY[task]
    shared = {"modulus": task_type.at_modulus(5).modulus, **task_type.example_settings} | short | settings
    return [make_trial(task, model, init_seed=seed, data_seed=seed, **shared) for seed in range(size)]


def train_pack(
    model: str, task: str, size: int, settings: dict[str, Any], kernel: str = "", static: bool = True
) -> dict[str, Any]:
    """Train a pack of trials on one task: see `train_trials`."""
    return train_trials(make_trials(model, task, size, settings), kernel, static)


def train_across_cells(model: str, cells: list[tuple[str, int]], size: int, kernel: str = "") -> dict[str, Any]:
    """Train a pack of `size` trials on each of several tasks, given with their moduli: see `train_trials`."""
    of_cells = [make_trials(model, task, size, {"modulus": modulus}) for task, modulus in cells]
    return train_trials([trial for trials in of_cells for trial in trials], kernel)


def train_trials(trials: list[Trial], kernel: str = "", static: bool = True) -> dict[str, Any]:
    """Train a pack from its initialisation to its results, and resume it once from snapshots.

    `kernel` is the one to use; by default that which the model prefers.

    It takes two steps, of which one is watched, then snapshots, a third step and a validation. There the first trial of
    each task stops and is tested, and the others are stacked anew and train to the end.
    """
    size = len(trials)
    recorder = TheStepItself() if static else None
    with (
        mock.patch.dict(os.environ, {VARIABLE: kernel}),
        mock.patch.object(train, "find_recorder", return_value=recorder),
        FakeDevice() as device,
        Memory() as used,
    ):
        training = Training(trials, "cuda")
        training.advance(stop_at=1)
        with Watch() as watch:
            training._train_step()
        with Watch() as validation:
            training.validation_scores()
        snapshots = [_on_host(training.snapshot(position)) for position in range(size)]
        reads_before = device.num_reads
        training.advance()
        reads_at_validation = device.num_reads - reads_before
        sizes = [size, len(training.members)]
        while not training.finished:
            training.advance()
        peak, predicted = used.peak, memory(padded(trials), size, "cuda")
        resumed = Training.resume(snapshots, "cuda")
        resumed._train_step()
        devices = {str(tensor.device) for tensor in resumed.snapshot().parameters.values()}
        own_shapes = all(
            {name: tuple(tensor.shape) for name, tensor in each.parameters.items()}
            == each.trial.model.shapes(each.trial.vocabulary)
            for each in snapshots
        )
    return {
        "kernel": training.kernel,
        "kernels": sum(watch.kernels.values()),
        "validation_kernels": sum(validation.kernels.values()),
        "most": watch.kernels.most_common(12),
        "with_host": watch.with_host,
        "reads_at_validation": reads_at_validation,
        "sizes": sizes,
        "num_results": len(training.results),
        "peak": peak,
        "predicted": predicted,
        "devices": sorted(devices),
        "resumed_at": resumed.step,
        "own_shapes": own_shapes,
    }


class Streams:
    """Streams and events that torch for CPUs does not have: they note in which order they are used."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.current = "training"

    def __enter__(self) -> "Streams":
        self._patches = contextlib.ExitStack()
        for name, value in (
            ("Stream", lambda device: Stream(self, "side")),
            ("current_stream", lambda device: Stream(self, self.current)),
            ("Event", lambda: Stream(self, "event")),
            ("stream", self._within),
        ):
            self._patches.enter_context(mock.patch.object(torch.cuda, name, value))
        return self

    def __exit__(self, *error: Any) -> None:
        self._patches.close()

    @contextlib.contextmanager
    def _within(self, stream: "Stream") -> Any:
        before, self.current = self.current, stream.name
        yield
        self.current = before


class Stream:
    """A stream or an event."""

    def __init__(self, streams: Streams, name: str):
        self._streams, self.name = streams, name

    def wait_stream(self, other: "Stream") -> None:
        self._streams.log.append(f"{self.name} waits for {other.name}")

    wait_event = wait_stream

    def record(self) -> None:
        self._streams.log.append(f"{self.name} recorded on {self._streams.current}")

    def synchronize(self) -> None:
        self._streams.log.append(f"host waits for {self.name}")


class Copies(TorchDispatchMode):
    """Notes what the host takes part in: memory, pinned or not, and copies with the stream that they are on."""

    def __init__(self, streams: Streams) -> None:
        super().__init__()
        self._streams = streams

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, func.overloadpacket.__name__
        pinned = name == "empty" and kwargs.pop("pin_memory", False)  # which needs CUDA's allocator
        result = func(*args, **kwargs)
        if pinned:
            self._streams.log.append("pinned memory")
        elif name == "copy_":
            to, source = args[:2]
            waits = "" if args[2:] == (True,) or kwargs.get("non_blocking") else ", waited for"
            self._streams.log.append(f"{source.device.type} to {to.device.type} on {self._streams.current}{waits}")
        elif name not in NO_KERNEL and any(
            isinstance(leaf, Tensor) and leaf.device.type != "cuda" for leaf in tree_leaves((args, result))
        ):
            self._streams.log.append(f"host: {name}")
        return result


def copy_pack(model: str, size: int, static: bool) -> dict[str, Any]:
    """Copy a pack to the host twice, with a training step between; return what was done, in which order, how often."""
    recorder = TheStepItself() if static else None
    with mock.patch.object(train, "find_recorder", return_value=recorder), FakeDevice():
        training = Training(make_trials(model, "modular_addition", size, {"width": 16}), "cuda")
        training.advance(stop_at=1)
        memory, streams, logs = HostCopy(), Streams(), []
        for _ in range(2):
            streams.log.clear()
            with streams, Copies(streams):
                copied = memory.take([training.view(position) for position in range(size)])
                streams.log.append("copied")
                snapshots = copied.wait()
            logs.append([(what, len(list(group))) for what, group in itertools.groupby(streams.log)])
            training._train_step()
    tensors = [tensor for each in snapshots for kind in STATES for tensor in getattr(each, kind).values()]
    devices = sorted({tensor.device.type for tensor in tensors})
    return {"logs": logs, "num_tensors": len(tensors), "devices": devices, "steps": [each.step for each in snapshots]}


def _on_host(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot as it is read from a checkpoint."""
    states = {kind: {name: tensor.cpu() for name, tensor in getattr(snapshot, kind).items()} for kind in STATES}
    return dataclasses.replace(snapshot, **states)


def wait_in_a_step(how: str) -> str:
    """Take a step that reads a value back from the device; return the error that this is, or nothing."""
    waits = {"item": Tensor.item, "bool": bool, "nonzero": torch.nonzero}
    update = train.update

    def waiting(*arguments: Any) -> Tensor:
        loss_K = update(*arguments)
        waits[how](loss_K[0])
        return loss_K

    with mock.patch.object(train, "update", waiting):
        try:
            train_pack("rnn", "modular_addition", 1, {"width": 16})
        except RuntimeError as error:
            return type(error).__name__
    return ""


def copy_in_a_step() -> list[str]:
    """Take a step that copies a value to the host; return the operations in which the host takes part."""
    update = train.update

    def copying(*arguments: Any) -> Tensor:
        loss_K = update(*arguments)
        loss_K.cpu()
        return loss_K

    with mock.patch.object(train, "update", copying):
        return list(train_pack("rnn", "modular_addition", 1, {"width": 16})["with_host"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(globals())
