"""`orch query` from the shell on 10,000 finished trials and 1,000,000 curve rows, compared with pandas.

Both run in a new process, so starting Python and importing libraries counts. The store is read before compaction,
with a file for every trial, and after it. pandas reads the files as they are: it does not remove results that were
withdrawn, written twice or damaged.

Usage: python benchmarks/query.py [REPETITIONS]
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from store import fill

from orch.store import Store

ORCH = [sys.executable, "-c", "from orch.cli import main; main()", "query"]
PANDAS = (
    "import sys, pandas; location, columns = sys.argv[1], sys.argv[2].split();"
    "print(pandas.read_parquet(location, columns=columns).groupby(columns[0])[columns[1]].mean().to_csv())"
)
QUESTIONS = {
    "trials": ("model", "ood_accuracy"),
    "curves": ("step", "validation_loss"),
}


def seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def compare(what: str, folder: Path, repetitions: int) -> None:
    for table, (key, value) in QUESTIONS.items():
        sql = f"SELECT {key}, avg({value}) FROM {table} GROUP BY {key}"
        sides = {
            "orch": [*ORCH, sql, "--store", str(folder)],
            "pandas": [sys.executable, "-c", PANDAS, str(folder / table), f"{key} {value}"],
        }
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(repetitions):
            for name, command in sides.items():
                times[name].append(seconds(command))
        ours, theirs = (statistics.median(times[name]) for name in ("orch", "pandas"))
        num_files = len(list((folder / table).rglob("*.parquet")))
        print(
            f"{what}, {table} ({num_files:,} files): orch query {ours:.2f} s, pandas {theirs:.2f} s:"
            f" ratio {theirs / ours:.1f}",
            flush=True,
        )


def main(repetitions: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = Store.open(folder)
        fill(store, single_trials=True)
        compare("not compacted", folder, repetitions)
        store.compact(min_parts=2)
        compare("compacted", folder, repetitions)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
