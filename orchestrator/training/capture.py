"""Recording a training step as one launch: on CUDA a step of hundreds of kernels becomes a CUDA graph and is replayed.

Starting a kernel from Python takes several microseconds, longer than most kernels of a step run. A graph starts all of
them at once. The arithmetic is the same: a replayed step runs the kernels of the ordinary one on the same memory.

`ORCH_CAPTURE=off`, in the environment of the workers, runs every step one operation at a time.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch

from orch.core.errors import InvalidSettings

NUM_WARM_UP_STEPS = 3
"""Ordinary steps before one is recorded: libraries set themselves up in first calls, which cannot be recorded."""

StepFunction = Callable[[], None]


class Recorder(Protocol):
    """A way to record a step."""

    def warm_up(self, step: StepFunction) -> None:
        """Run a step before one is recorded."""
        ...

    def record(self, step: StepFunction) -> StepFunction:
        """Return a function that repeats the operations of a step. Recording runs none of them."""
        ...


def find_recorder(device: torch.device) -> Recorder | None:
    """Return how to record steps on a device; None where they run one operation at a time."""
    setting = os.environ.get("ORCH_CAPTURE", "on")
    if setting not in ("on", "off"):
        raise InvalidSettings([f"ORCH_CAPTURE={setting} is unknown: use on or off"])
    return CudaGraphs(device) if device.type == "cuda" and setting == "on" else None


@contextmanager
def one_operation_at_a_time() -> Iterator[None]:
    """Record no steps of trainings that are opened within."""
    before = os.environ.get("ORCH_CAPTURE")
    os.environ["ORCH_CAPTURE"] = "off"
    try:
        yield
    finally:
        if before is None:
            del os.environ["ORCH_CAPTURE"]
        else:
            os.environ["ORCH_CAPTURE"] = before


class CudaGraphs:
    """Records steps as CUDA graphs."""

    def __init__(self, device: torch.device):
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def warm_up(self, step: StepFunction) -> None:
        # On the stream that records, so that what libraries keep for each stream is there.
        current = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            step()
        current.wait_stream(self._stream)

    def record(self, step: StepFunction) -> StepFunction:
        graph = torch.cuda.CUDAGraph()
        # Other threads of the process, such as one that copies a checkpoint, may use the device meanwhile.
        with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
            step()
        return graph.replay


class RecordedStep:
    """A step that runs as it is for a few calls, is then recorded, and is replayed from then on.

    The first calls are training steps like all others, so that recording costs nothing that would have to be undone. A
    step that cannot be recorded, such as one that waits for the device, goes on as it is.
    """

    def __init__(self, step: StepFunction, recorder: Recorder, warnings: list[str]):
        """Add a warning to `warnings` if the step cannot be recorded."""
        self._step, self._recorder, self._warnings = step, recorder, warnings
        self._num_warm_up_steps = NUM_WARM_UP_STEPS
        self._repeat: StepFunction | None = None

    def __call__(self) -> None:
        if self._repeat is None and self._num_warm_up_steps > 0:
            self._num_warm_up_steps -= 1
            self._recorder.warm_up(self._step)
            return
        if self._repeat is None:
            self._repeat = self._record()
        self._repeat()

    def _record(self) -> StepFunction:
        try:
            return self._recorder.record(self._step)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:300]
            self._warnings.append(f"a training step cannot be recorded ({reason}): it runs one operation at a time")
            return self._step
