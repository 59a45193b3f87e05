"""Capacity of one driver: trials that do nothing, on eight Ray nodes of eight GPUs each, all on this machine.

Nothing is trained and no worker imports torch: the driver, Ray and the writes to the store are measured. The GPUs are
declared to Ray only. Prints the rate, the driver's memory before and after, and how many parts the store took.

Usage: python benchmarks/scale.py [num_trials] [trials per pack]
"""

import dataclasses
import os
import resource
import sys
import tempfile
import time
from collections import deque

from overhead import Clock
from ray.cluster_utils import Cluster

from orch.running import driver
from orch.running.lease import Lease
from orch.running.machines import connected
from orch.running.options import RunOptions
from orch.running.run_state import RunState
from orch.running.units import Unit
from orch.store import Store
from orch.sweeps.trial import make_trial

NODES, GPUS = 8, 8


class Counting(Clock):
    """A clock that also counts the events of the driver."""

    def __init__(self):
        super().__init__()
        self.events = 0

    def started(self, unit):
        super().started(unit)
        self.events += 1

    def finished(self, unit, summary):
        self.events += 1


def memory_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def main(num_trials: int, per_pack: int) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "num_gpus": 0})
    try:
        for _ in range(NODES):
            cluster.add_node(num_cpus=GPUS, num_gpus=GPUS, object_store_memory=80 << 20)
        os.environ["RAY_ADDRESS"] = cluster.address
        with connected() as machines:
            base = make_trial("modular_addition", "rnn", width=16)
            trials = [dataclasses.replace(base, init_seed=seed) for seed in range(num_trials)]
            units = [Unit(trials[start : start + per_pack]) for start in range(0, num_trials, per_pack)]
            with tempfile.TemporaryDirectory() as folder, Lease(Store.open(folder), "scale") as lease:
                options = RunOptions(training="orch.training.simulated:open_training")
                before, clock, began = memory_mb(), Counting(), time.perf_counter()
                driver.run(RunState(deque(units), machines, options, clock, Store.open(folder), lease.driver_id))
                ended, after = time.perf_counter(), memory_mb()
                store = Store.open(folder)
                assert len(store.done()) == num_trials
                parts = sum(len(files) for _, _, files in os.walk(folder))
            seconds = ended - clock.first
            print(f"{machines.description}, {os.cpu_count()} real cores")
            print(f"{num_trials:,} trials in {len(units):,} units of {per_pack}: {ended - began:.0f} s, of which")
            print(f"  {clock.first - began:.0f} s to the first trial, then {1e3 * seconds / len(units):.0f} ms a unit,")
            print(f"  {1e3 * seconds / num_trials:.0f} ms a trial, {clock.events / seconds:.0f} events a second")
            print(
                f"  driver memory {before:.0f} -> {after:.0f} MB: {1e3 * (after - before) / num_trials:.1f} kB a trial"
            )
            print(f"  {parts:,} files written to the store, {parts / seconds:.0f} a second")
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(*(int(argument) for argument in (sys.argv[1:] + ["10000", "9"][len(sys.argv) - 1 :])))
