"""Scale: planning, status, query, scheduling and failures at sizes from a thousand trials to a million.

- plan: what `orch plan` computes for a grid of so many trials, packs included;
- status, query: the commands, start of the process included, on a compacted store where all these trials are finished;
- failure: the longest that a lost worker keeps the driver's event loop, which serves all other workers, on that store;
- scheduling: trials that do nothing, in packs of nine, on Ray nodes whose GPUs are declared to Ray only, all on this
  machine. No worker imports torch: the driver, Ray and the writes to the store are measured, once all workers have
  started and the first quarter of the trials is done. Starting 64 processes takes a small machine a minute or more.

Each time is that of the wall clock, with the processor's time of the process that is measured in parentheses: other
programs on the machine disturb it less. Usage:

    python benchmarks/scale.py                    1,000, 10,000 and 100,000 trials; plan, status and query of 1,000,000
    python benchmarks/scale.py stored 100000      plan, status, query and failure at this size (one or several)
    python benchmarks/scale.py scheduling 10000   scheduling at this size
"""

import datetime
import json
import os
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import ray
from overhead import Clock
from ray.cluster_utils import Cluster

from orch.planning.packs import packed
from orch.planning.plan import Plan
from orch.running import driver
from orch.running.lease import Lease
from orch.running.machines import connected
from orch.running.options import RunOptions
from orch.running.requests import Request, record
from orch.running.run_state import RunState
from orch.running.session import compacting
from orch.running.units import Unit
from orch.store import Outcome, Store, curve_rows, trial_row
from orch.store.attempts import Attempt
from orch.store.columns import SCHEMAS
from orch.store.part import to_table
from orch.sweeps.result import CurvePoint, Result, StopReason
from orch.sweeps.trial import Trial, make_trial

SIZES, LARGEST = (1_000, 10_000, 100_000), 1_000_000
NODES, GPUS, PER_PACK = 8, 8, 9
SWEEP = """
import orch

TITLE = "Large"
cells = orch.grid(
    models=["rnn", "lstm", "rotation", "lru"],
    tasks=["modular_addition", "even_pairs"],
    learning_rates=(3e-4, 1e-3),
    seeds={seeds},
    width=16,
)
"""
QUERY = "SELECT model, task, count(*), max(ood_accuracy) FROM trials GROUP BY ALL ORDER BY ALL"
SIMULATED = RunOptions(training="orch.training.simulated:open_training")
LOST = 5
"""Workers that are ended to measure what a failure costs."""


class Watch:
    """The seconds that a block takes: of the wall clock, and of this process's processor."""

    def __enter__(self):
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error):
        self.wall, self.cpu = time.perf_counter() - self._began[0], time.process_time() - self._began[1]

    def __str__(self):
        return f"{self.wall:.2f} s ({self.cpu:.2f})"


def command(*arguments: str) -> str:
    """Return the seconds that an `orch` command takes."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "orch", *arguments], stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{wall:.2f} s ({cpu:.2f})"


def stored(sizes: Sequence[int]) -> None:
    """Print what planning, status, query and a failure take, for each size."""
    print(f"{'trials':>10}{'plan':>20}{'status':>20}{'query':>20}{'a failure':>22}")
    for num_trials in sizes:
        with tempfile.TemporaryDirectory() as folder:
            file, location = Path(folder, "large.py"), f"{folder}/runs"
            file.write_text(SWEEP.format(seeds=max(1, num_trials // 16)))
            request, store = Request.read([str(file)], "laptop", ()), Store.open(location)
            with Watch() as planning:
                plan = packed(request.plan(None))
            record(store, request, plan)
            count = len(plan.trials)
            fill(store, plan)
            del plan
            status = command("status", "--store", location)
            query = command("query", QUERY, "--store", location)
            cost = failure(store) if num_trials <= SIZES[-1] else "-"
            print(f"{count:10,}{planning!s:>20}{status:>20}{query:>20}{cost:>22}", flush=True)


def fill(store: Store, plan: Plan) -> None:
    """Write a result for every trial, and compact the store."""
    cells: dict[tuple[Trial, float], list[Trial]] = {}
    for planned in plan.trials:
        cells.setdefault((planned.trial.stackable(), planned.trial.learning_rate), []).append(planned.trial)
    now = datetime.datetime.now(datetime.UTC)
    point = CurvePoint(step=100, train_loss=0.1, validation_loss=0.1, validation_accuracy=0.9, seconds=1.0)
    for number, trials in enumerate(cells.values()):
        first, count = trials[0], len(trials)
        scores = dict.fromkeys(first.tested_lengths, 0.5)
        result = Result(first, StopReason.BUDGET, 100, 1.0, (point,), scores, scores, parameters={})
        attempt = Attempt(attempt_id="a", trial_id=first.id, driver_id="d", device="cpu")
        seeds = [trial.init_seed for trial in trials]
        config = json.dumps(first.to_dict()).replace('_seed": 0', '_seed": {0}')
        changed = {
            "trial_id": pa.array([trial.id for trial in trials]),
            "attempt_id": pa.array([secrets.token_hex(16) for _ in trials]),
            "init_seed": pa.array(seeds),
            "data_seed": pa.array(seeds),
            "config": pa.array([config.replace("{0}", str(seed)) for seed in seeds]),
        }
        began = now - datetime.timedelta(seconds=2 * count, milliseconds=number)  # no two of them at the same time
        times = pa.array([began + datetime.timedelta(seconds=place) for place in range(count)])
        rows = trial_row(result, {"attempt_id": "a", "device": "cpu", "finished_at": now})
        store.append("curves", repeated("curves", curve_rows(result, "a")[0], changed))
        store.append("trials", repeated("trials", rows, changed | {"finished_at": times}))
        for row in (attempt.start_row(), attempt.end_row(Outcome.FINISHED, 100)):
            store.append("attempts", repeated("attempts", row, changed | {"at": times}))
    store.compact(min_parts=2)


def repeated(table: str, row: dict, changed: dict[str, pa.Array]) -> pa.Table:
    """Return a row once for each of the values that replace its own."""
    data = to_table(table, SCHEMAS[table], [row])
    data = data.take(pa.array(np.zeros(len(changed["trial_id"]), np.int64)))
    for place, field in enumerate(data.schema):
        if field.name in changed:
            data = data.set_column(place, field, changed[field.name].cast(field.type))
    return data


class Timed(RunState):
    """A run that ends some of its workers, and times how long it handles that in the driver's event loop."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.taken = []
        self.num_killed = 0

    def ended(self, tune_id, error):
        self._timed(lambda: super(Timed, self).ended(tune_id, error), error)

    def settle(self, wait=False):
        self._timed(lambda: super(Timed, self).settle(wait), bool(self._lost) and not wait)

    def _timed(self, handle: Callable[[], None], counts: bool) -> None:
        with Watch() as watch:
            handle()
        if counts:
            self.taken.append(watch)

    def reported(self, tune_id, report):
        if self.num_killed < LOST and not report["done"]:
            self.num_killed += 1
            ray.kill(self.running_units[tune_id][0].temporary_state.ray_actor)
        super().reported(tune_id, report)


class Failing(Clock):
    """A listener that accepts failures."""

    def failed(self, unit, failure, again): ...


def failure(store: Store) -> str:
    """End some workers of a run on the store, and return the longest that this kept the driver's event loop."""
    base = make_trial("modular_addition", "rnn", width=16)
    units = [Unit([replace(base, init_seed=10_000_000 + seed)]) for seed in range(4 * LOST)]
    options = replace(SIMULATED, training="orch.training.simulated:open_slow_training")
    with connected(2) as machines, Lease(store, "failure") as lease:
        run = Timed(deque(units), machines, options, Failing(), store, lease.driver_id)
        driver.run(run)
    assert run.num_killed == LOST
    wall, cpu = max(watch.wall for watch in run.taken), max(watch.cpu for watch in run.taken)
    return f"{1e3 * wall:.1f} ms ({1e3 * cpu:.1f})"


class Together(driver.Worker):
    """A worker that begins once all workers have started, so that no trial is measured while others start."""

    folder = ""
    """A folder in which each worker makes a file."""
    num_workers = 0

    def setup(self, config):
        super().setup(config)
        Path(self.folder, str(os.getpid())).touch()
        while len(os.listdir(self.folder)) < self.num_workers:
            time.sleep(0.5)


def scheduling(sizes: Sequence[int]) -> None:
    """Print what it takes to schedule trials that do nothing."""
    os.environ["OMP_NUM_THREADS"] = "1"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "num_gpus": 0})
    try:
        for _ in range(NODES):
            cluster.add_node(num_cpus=GPUS, num_gpus=GPUS, object_store_memory=80 << 20)
        os.environ["RAY_ADDRESS"] = cluster.address
        with connected() as machines:
            print(f"{machines.description}, {os.cpu_count()} real cores")
            for num_trials in sizes:
                print(f"{num_trials:10,} {schedule(num_trials, machines)}", flush=True)
    finally:
        cluster.shutdown()


def schedule(num_trials: int, machines) -> str:
    base = make_trial("modular_addition", "rnn", width=16)
    trials = [replace(base, init_seed=seed) for seed in range(num_trials)]
    units = [Unit(trials[start : start + PER_PACK]) for start in range(0, num_trials, PER_PACK)]
    num_workers = min(machines.slots, len(units))
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as started,
        Lease(Store.open(folder), "scale") as lease,
    ):
        store, clock, before = Store.open(folder), Clock(), memory_mb()
        worker = type("TogetherHere", (Together,), {"folder": started, "num_workers": num_workers})
        with Watch() as watch, compacting(store, _NoLog()):
            driver.run(RunState(deque(units), machines, SIMULATED, clock, store, lease.driver_id), worker)
        after = memory_mb()
        assert len(Store.open(folder).done()) == num_trials
        assert len(os.listdir(started)) >= num_workers
    return (
        f"trials in {len(units):,} units on {num_workers} workers: {1e3 * clock.steady:.1f} ms a trial; the driver's"
        f" processor {1e3 * watch.cpu / num_trials:.1f} ms a trial; memory {before:.0f} to {after:.0f} MB,"
        f" {1e3 * (after - before) / num_trials:.1f} kB a trial; {watch.wall:.0f} s with the start of the workers"
    )


class _NoLog:
    def event(self, what, **fields): ...


def memory_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


if __name__ == "__main__":
    kind, *given = sys.argv[1:] or [""]
    chosen = tuple(map(int, given)) or SIZES
    if kind in ("", "stored"):
        stored(chosen if given else (*SIZES, LARGEST))
    if kind in ("", "scheduling"):
        scheduling(chosen)
