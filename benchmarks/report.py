"""`orch report` from the shell on a store with every trial of the paper and more: 10,000 trials, 1,000,000 curve rows.

The results are invented. The time to write the page and the processor time that it takes are measured: the second
depends little on what else the machine does.

Usage: python benchmarks/report.py
"""

import dataclasses
import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from orch.store import Store, curve_rows, trial_row
from orch.sweeps.expansion import expand
from orch.sweeps.result import CurvePoint, Result, StopReason
from orch.sweeps.scales import PAPER
from orch.sweeps.selection import Results
from orch.sweeps.trial import Trial

TRIALS, POINTS, AT_ONCE = 10_000, 100, 500


def result_of(trial: Trial) -> Result:
    """Return scores computed from the trial id, so that every run measures the same page."""
    score = int(hashlib.sha256(trial.id.encode()).hexdigest()[:8], 16) / 16**8
    points = (
        CurvePoint(100 * n, score / n, score / n, min(1.0, score + n / POINTS), 0.1 * n) for n in range(1, POINTS + 1)
    )
    accuracy = {length: max(0.0, score - length / 2000) for length in trial.tested_lengths}
    return Result(
        trial, StopReason.BUDGET, 100 * POINTS, 12.5, tuple(points), accuracy, dict.fromkeys(accuracy, 0.1), {}
    )


def write(store: Store, trials: list[Trial]) -> None:
    for start in range(0, len(trials), AT_ONCE):
        results = [result_of(trial) for trial in trials[start : start + AT_ONCE]]
        store.write("curves", [row for result in results for row in curve_rows(result, result.trial.id)])
        store.write(
            "trials", [trial_row(result, {"attempt_id": result.trial.id, "host": "node"}) for result in results]
        )


def fill(store: Store) -> None:
    """Write all trials of the paper, then those that waited for best learning rates, then more seeds of main."""
    first = expand(["all"], PAPER, Results.none()).trials
    write(store, [each.trial for each in first.values()])
    both = expand(["all"], PAPER, Results.of_table(store.read("trials"))).trials
    write(store, [each.trial for key, each in both.items() if key not in first])
    more = expand(["main"], dataclasses.replace(PAPER, seeds=(3, 4, 5)), Results.none()).trials
    write(store, [each.trial for each in more.values()][: TRIALS - len(both)])


def processor_seconds() -> float:
    """Return the processor time of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        store = Store.open(Path(name) / "runs")
        fill(store)
        store.compact(min_parts=2)
        command = [
            sys.executable,
            "-c",
            "from orch.cli import main; main()",
            "report",
            "all",
            "--scale",
            "paper",
        ]
        page = Path(name) / "report.html"
        started, used_before = time.perf_counter(), processor_seconds()
        subprocess.run([*command, "--store", store.uri, "--output", str(page)], check=True)
        elapsed, used = time.perf_counter() - started, processor_seconds() - used_before
        print(f"{len(store.done()):,} trials, {store.read('curves').num_rows:,} curve rows, compacted:")
        size = page.stat().st_size / 1e6
        print(f"orch report took {elapsed:.1f} s, {used:.1f} s of one processor, for a page of {size:.1f} MB")


if __name__ == "__main__":
    main()
