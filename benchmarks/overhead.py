"""Scheduling cost per trial: 400 trials that do nothing, with orch and with Ray Tune used in two ways, in one run.

- ours: the driver of `orch sweep` with simulated training; rows, curves and attempts are written to a store;
- Ray Tune, reused actors: a class trainable with `reset_config`, its loggers off, nothing written;
- Ray Tune with its defaults: a function trainable that imports torch, nothing written.

Usage: python benchmarks/overhead.py [num_trials]
"""

import contextlib
import dataclasses
import logging
import os
import sys
import tempfile
import time
from collections import deque

from ray import tune

from orch.running import driver
from orch.running.lease import Lease
from orch.running.machines import Machines, connected
from orch.running.options import RunOptions
from orch.running.run_state import RunState
from orch.running.units import Turn, Unit
from orch.store import Store
from orch.sweeps.trial import make_trial


class Clock:
    """A listener that records when the first trial started, and when each finished."""

    def __init__(self):
        self.first = None
        self.ends = []

    @property
    def steady(self) -> float:
        """Seconds per trial, without the first quarter, in which workers start."""
        skipped = len(self.ends) // 4
        return (self.ends[-1] - self.ends[skipped]) / (len(self.ends) - 1 - skipped)

    def started(self, unit):
        self.first = self.first or time.perf_counter()

    def finished(self, unit, summary):
        self.ends.append(time.perf_counter())

    def failed(self, unit, failure, again):
        raise SystemExit(failure.trace)

    def tick(self, running, num_waiting): ...

    def turn(self, unit):
        return Turn.NOW

    def should_stop(self):
        return False

    def arrange(self, queue):
        pass


def ours(num_trials: int, machines: Machines, beside=contextlib.nullcontext) -> tuple[float, float, float]:
    """Return the seconds per trial: of the whole run, from the first start, and once workers run.

    `beside` makes a context, given the store's folder, in which the trials run.
    """
    base = make_trial("modular_addition", "rnn", width=16)
    units = [Unit([dataclasses.replace(base, init_seed=seed)]) for seed in range(num_trials)]
    with tempfile.TemporaryDirectory() as folder:
        with beside(folder), Lease(Store.open(folder), "overhead") as lease:
            options = RunOptions(training="orch.training.simulated:open_training")
            clock, began = Clock(), time.perf_counter()
            driver.run(RunState(deque(units), machines, options, clock, Store.open(folder), lease.driver_id))
            ended = time.perf_counter()
        assert len(Store.open(folder).done()) == num_trials
    return (ended - began) / num_trials, (ended - clock.first) / num_trials, clock.steady


class Reused(tune.Trainable):
    def step(self):
        return {"done": True}

    def reset_config(self, new_config):
        return True


def import_torch_and_report(config):
    import torch

    tune.report({"loss": float(torch.zeros(()))})


def plain(trainable, num_trials: int, reuse: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        tune.Tuner(
            tune.with_resources(trainable, {"cpu": 1}),
            param_space={"x": tune.grid_search(list(range(num_trials)))},
            tune_config=tune.TuneConfig(reuse_actors=reuse),
            run_config=tune.RunConfig(
                storage_path=folder, verbose=0, checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False)
            )
            if reuse
            else tune.RunConfig(storage_path=folder, verbose=0),
        ).fit()
        return (time.perf_counter() - began) / num_trials


if __name__ == "__main__":
    num_trials = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    process_began = time.perf_counter()
    with connected(2) as machines:
        ray_seconds = time.perf_counter() - process_began
        whole, scheduling, _ = ours(num_trials, machines)
        logging.disable(logging.WARNING)
        reused = plain(Reused, num_trials // 4, reuse=True)  # with its per-trial loggers off, as ours are
        os.environ.pop("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS")
        os.environ.pop("TUNE_MAX_PENDING_TRIALS_PG")
        default = plain(import_torch_and_report, max(4, num_trials // 20), reuse=False)
    print(f"per trial, on {machines.description}; starting Ray took {ray_seconds:.1f} s")
    for name, count, seconds in (
        ("ours, from the start of the first trial to the last row", num_trials, scheduling),
        ("ours, the whole run of the driver", num_trials, whole),
        ("Ray Tune, reused actors", num_trials // 4, reused),
        ("Ray Tune with its defaults, importing torch", max(4, num_trials // 20), default),
    ):
        print(f"  {name:56} {1e3 * seconds:8.1f} ms   ({count} trials)   {seconds / scheduling:6.1f} x")
