"""Training time lost to the checkpoints of a pack of nine full bilinear models: written at once, and by a thread.

Both ways take turns in one run, with torch on one thread and a store in a temporary folder:
- at once: each trial is cloned, serialised by safetensors and written, while training waits;
- in the thread: the pack is copied, and written by `CheckpointWriter` while training goes on.

"Training waits" is the time between two steps. "Processor" is the time that all threads take for a checkpoint: a worker
with one core loses that to training, too. The figures for an A100 are arithmetic.

Usage: python benchmarks/checkpoints.py [--turns 3] [--width 256] [--size 9]
"""

import argparse
import tempfile
import time
from collections.abc import Callable

import torch
from safetensors.torch import save

from orch.running.checkpoint_writer import CheckpointWriter
from orch.running.options import RunOptions
from orch.store import Store
from orch.sweeps.trial import make_trial
from orch.training.snapshot import Snapshot
from orch.training.train import Training

INTERVAL = RunOptions.checkpoint_seconds
PCIE = 25e9
"""Bytes per second from an A100 to pinned memory."""


class Pack:
    """A pack in training, and the time that its steps take."""

    def __init__(self, size: int, width: int, store: Store):
        seeds = range(size)
        trials = [make_trial("modular_addition", "bilinear", width=width, init_seed=seed) for seed in seeds]
        self.training, self.store, self.writer = Training(trials), store, CheckpointWriter(store)
        self.step()

    @property
    def views(self) -> list[Snapshot]:
        return [self.training.view(position) for position in range(len(self.training.members))]

    def num_bytes(self) -> int:
        states = (state for view in self.views for state in (view.parameters, view.first, view.second))
        return sum(tensor.nbytes for state in states for tensor in state.values())

    def step(self) -> float:
        started = time.perf_counter()
        self.training._train_step()
        return time.perf_counter() - started

    def at_once(self) -> None:
        """Write a checkpoint as a worker without a thread would."""
        for position, member in enumerate(self.training.members):
            copy = self.training.snapshot(position)
            states = {"parameters": copy.parameters, "first": copy.first, "second": copy.second}
            tensors = {f"{kind}/{name}": tensor for kind, state in states.items() for name, tensor in state.items()}
            self.store.put_checkpoint(member.trial.id, save(tensors))

    def in_thread(self) -> None:
        """Begin to write a checkpoint, as a worker does."""
        self.writer.start(self.views)

    def finish(self) -> int:
        """Train until the checkpoint is written. Return the number of steps."""
        num_steps = 0
        while self.writer.busy:
            self.step()
            num_steps += 1
        self.writer.collect()
        return num_steps


def measure(pack: Pack, begin: Callable[[], None], step_seconds: float) -> tuple[float, float, float, int]:
    """Return the seconds that training waited, that the processor took, and until all was written; and the steps."""
    started, processor = time.perf_counter(), time.process_time()
    begin()
    waited = time.perf_counter() - started
    num_steps = pack.finish()
    whole = time.perf_counter() - started
    return waited, time.process_time() - processor - num_steps * step_seconds, whole, num_steps


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--size", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        pack = Pack(options.size, options.width, Store.open(folder))
        ways = {"at once": pack.at_once, "in the thread": pack.in_thread}
        found: dict[str, list[tuple[float, float, float, int]]] = {name: [] for name in ways}
        pack.in_thread()  # the first copy gets its memory
        pack.finish()
        for _ in range(options.turns):
            for name, begin in ways.items():
                processor = time.process_time()
                for _ in range(3):
                    pack.step()
                step_seconds = (time.process_time() - processor) / 3
                found[name].append(measure(pack, begin, step_seconds))
    gigabytes = pack.num_bytes() / 1e9
    print(f"{options.size} bilinear models of width {options.width}: {gigabytes:.2f} GB of weights and moments,")
    print(f"a checkpoint every {INTERVAL:.0f} s, one thread; the fastest of {options.turns} turns (and the slowest)\n")
    for name, turns in found.items():
        for what, place in (("training waits", 0), ("processor", 1), ("written after", 2)):
            values = sorted(turn[place] for turn in turns)
            share = f"{values[0] / INTERVAL:6.2%} of the time" if place < 2 else ""
            print(f"  {name:14} {what:15} {values[0]:7.2f} s ({values[-1]:.2f})  {share}")
        print(f"  {name:14} steps meanwhile {max(turn[3] for turn in turns):4}")
    seconds = pack.num_bytes() / PCIE
    print(
        f"\nA100, not measured: {gigabytes:.2f} GB at {PCIE / 1e9:.0f} GB/s keep the next step waiting {seconds:.3f} s,"
    )
    print(f"{seconds / INTERVAL:.2%} of the time; the host does not wait.")


if __name__ == "__main__":
    main()
