"""The use of a GPU by trials: its memory as torch counts it, and the share of the time in which it was busy.

What was not measured is None: on a CPU, without `nvidia-smi`, and for a unit shorter than the time between samples.
"""

import functools
import os
import subprocess
import sys
import threading
import time
from collections import deque
from typing import Any

from orch.store import Store

SAMPLE_SECONDS = 5.0
ANSWER_SECONDS = 10.0
MOST_SILENT = 3
"""Questions in a row without an answer after which none is asked any more: on a busy machine one may take too long."""
MOST_SAMPLES = 20_000
"""About a day of them; a unit that takes longer has the mean of its last day."""


def ask_nvidia(field: str) -> float | None:
    """Return a number that `nvidia-smi` knows of the GPU of this process; None if it does not tell.

    `memory.total` is in MiB, `utilization.gpu` in percent of the last second or less.
    """
    # The first GPU that this process may use: its place among those of the machine, or its name (UUID).
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0] or "0"
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits", f"--id={gpu}"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=ANSWER_SECONDS).stdout
        return float(said.splitlines()[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None  # no driver, no such GPU, or a GPU that does not count: "[N/A]"


def gpu_memory(store: Store, on_cluster: bool) -> float | None:
    """Return the bytes of the smallest GPU that trials may get; None if it is not known.

    `orch doctor` has recorded in the store what the GPUs of a cluster have. On this machine alone, its own is asked.
    """
    if not on_cluster and (found := ask_nvidia("memory.total")) is not None:
        return found * 2**20
    known = [values["memory"] for values in store.list_json("rates").values() if values.get("memory")]
    return min(known, default=None)


class _Sampler:
    """Samples how busy the GPU is, in a thread, until `nvidia-smi` no longer answers."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=MOST_SAMPLES)
        threading.Thread(target=self._sample, daemon=True, name="orch-gpu-use").start()

    def _sample(self) -> None:
        silent = 0
        while silent < MOST_SILENT:
            percent = ask_nvidia("utilization.gpu")
            if percent is None:
                silent += 1
            else:
                silent = 0
                self._samples.append((time.monotonic(), percent / 100))
            time.sleep(SAMPLE_SECONDS)

    def mean_since(self, began: float) -> float | None:
        """Return the mean of the samples since a time on the clock; None without any."""
        found = [busy for at, busy in list(self._samples) if at >= began]
        return sum(found) / len(found) if found else None


@functools.cache
def _sampler() -> _Sampler:
    return _Sampler()


class GpuUse:
    """The use of the GPU by this process since now. On another device nothing is measured."""

    def __init__(self, device: str):
        self._device, self._began = device, time.monotonic()
        self._sampler = _sampler() if device.startswith("cuda") else None
        if cuda := _cuda(device):
            cuda.reset_peak_memory_stats(device)

    def columns(self) -> dict[str, Any]:
        """Return the columns of a result."""
        cuda = _cuda(self._device)
        return {
            "peak_gpu_memory_mb": cuda.max_memory_allocated(self._device) / 2**20 if cuda else None,
            "gpu_utilisation": self._sampler.mean_since(self._began) if self._sampler else None,
        }


def _cuda(device: str) -> Any:
    """Return torch's module for GPUs; None if the device is none, or has not been used by this process."""
    torch = sys.modules.get("torch")  # a process that trains on a GPU has imported it
    return torch.cuda if device.startswith("cuda") and torch and torch.cuda.is_initialized() else None
