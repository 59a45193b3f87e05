"""Time to read a store of 10,000 finished trials and 1,000,000 curve rows.

Usage: python benchmarks/store.py
"""

import argparse
import datetime
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from s3 import s3_server

from orch.store import Store, curve_rows, table_reader, trial_row
from orch.sweeps.result import CurvePoint, Result, StopReason
from orch.sweeps.trial import make_trial

TRIALS, POINTS, AT_ONCE = 10_000, 100, 625
START = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)

Rows = list[dict[str, Any]]


def finished_trials() -> Iterator[tuple[dict[str, Any], Rows, Rows]]:
    """Yield rows of `trials`, `curves` and `attempts`, trial by trial."""
    models = ("bilinear", "factored", "lstm", "mamba", "transformer")
    for seed in range(TRIALS):
        trial = make_trial("modular_addition", models[seed % len(models)], init_seed=seed)
        result = Result(
            trial=trial,
            stop_reason=StopReason.BUDGET,
            steps=trial.steps,
            seconds=12.5,
            curve=tuple(
                CurvePoint(100 * n, 1 / (n + seed), 2 / (n + seed), 0.5, 0.1 * n) for n in range(1, POINTS + 1)
            ),
            test_accuracy={length: 1 / (1 + length + seed) for length in trial.tested_lengths},
            majority=dict.fromkeys(trial.tested_lengths, 0.1),
            parameters={},
        )
        attempt_id = f"{seed:032x}"
        finished = START + datetime.timedelta(seconds=seed)
        row = trial_row(
            result,
            {"attempt_id": attempt_id, "finished_at": finished, "host": "node", "packages": {"torch": "2.13.0"}},
        )
        attempt = {"attempt_id": attempt_id, "trial_id": trial.id, "at": finished, "host": "node", "worker": "w"}
        ends = [attempt | {"event": "start"}, attempt | {"event": "end", "outcome": "finished"}]
        yield row, curve_rows(result, attempt_id), ends


def fill(store: Store, single_trials: bool) -> None:
    """Write all rows; `single_trials` writes a part for every trial, as workers do, which is slower."""
    trials: Rows = []
    curves: Rows = []
    attempts: Rows = []
    for row, points, ends in finished_trials():
        trials.append(row)
        curves += points
        attempts += ends
        if single_trials:
            store.write("trials", [row])
        if len(trials) == AT_ONCE:
            if not single_trials:
                store.write("trials", trials)
            store.write("curves", curves)
            store.write("attempts", attempts)
            trials, curves, attempts = [], [], []


def timed(what: str, action: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    result = action()
    print(f"  {what:62}{time.perf_counter() - start:9.3f} s", flush=True)
    return result


def ask(location: str) -> None:
    """Time the reads of `orch status` in this process."""
    store = timed("open", lambda: Store.open(location))
    done = timed("done()", store.done)
    outcomes = timed("attempts: outcome", lambda: store.read("attempts", ("attempt_id", "outcome")))
    assert (len(done), outcomes.num_rows) == (TRIALS, 2 * TRIALS)
    timed("done() again", store.done)


def ask_all(location: str) -> None:
    for table in ("trials", "curves"):
        store = Store.open(location)
        timed(f"{table}, all columns", lambda store=store, table=table: store.read(table))
        timed(f"{table}, all columns, again", lambda store=store, table=table: store.read(table))


def in_new_process(what: str, command: str, location: str) -> None:
    print(what)
    program = [sys.executable, __file__, "--ask", command, location]
    timed("whole process, start and imports included", lambda: subprocess.run(program, check=True))


def local(folder: Path) -> None:
    store = Store.open(folder)
    print(f"local, {TRIALS:,} parts of one trial each")
    timed("write", lambda: fill(store, single_trials=True))
    in_new_process("local, not compacted, a new process", "status", str(folder))
    in_new_process("local, not compacted, a new process, without the rows in footers", "parquet", str(folder))
    in_new_process("local, not compacted, a new process, everything", "all", str(folder))
    in_new_process("local, not compacted, a new process, checksums not compared", "unchecked", str(folder))
    print("local")
    timed("compact", lambda: print(f"  {store.compact(min_parts=2)}"))
    size = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
    print(f"  {size / 2**20:.0f} MB in {len(list(folder.rglob('*.parquet')))} parts")
    for command, what in (("status", ""), ("all", ", everything")):
        in_new_process(f"local, compacted, a new process{what}", command, str(folder))
        unchecked = "unchecked" if command == "status" else "unchecked all"
        in_new_process(f"local, compacted, a new process{what}, checksums not compared", unchecked, str(folder))


def remote(folder: Path) -> None:
    with s3_server(str(folder)) as location:
        store = Store.open(location)
        print("S3")
        timed("write", lambda: fill(store, single_trials=False))
        timed("compact", lambda: print(f"  {store.compact(min_parts=2)}"))
        for path in sorted(folder.rglob("*.parquet")):
            path.unlink()
        in_new_process("S3, compacted, the first process", "status", location)
        in_new_process("S3, compacted, a second process", "status", location)
        in_new_process("S3, compacted, a third process, everything", "all", location)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ask", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ask:
        command, location = arguments.ask
        if command == "parquet":
            table_reader._MANY = math.inf
        if command.startswith("unchecked"):
            # As before there were checksums of whole parts: Arrow compares those of the pages that it reads.
            table_reader.TableReader._compared = lambda self, part: (self._source(part), False)
        (ask_all if command.endswith("all") else ask)(location)
        return
    for benchmark in (local, remote):
        with tempfile.TemporaryDirectory() as folder:
            benchmark(Path(folder))


if __name__ == "__main__":
    main()
