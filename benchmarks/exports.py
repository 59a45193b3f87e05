"""`orch export` from the shell of the store that benchmarks/report.py invents: 10,000 trials, 1,000,000 curve rows.

Each export runs twice; the second time there is nothing to add. Processor time is printed beside the elapsed time,
because it depends little on what else the machine does.

Usage: python benchmarks/exports.py [TARGET…]        (default: parquet csv)
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import fill, processor_seconds

from orch.store import Store


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        store = Store.open(Path(name) / "runs")
        fill(store)
        store.compact(min_parts=2)
        for target in sys.argv[1:] or ["parquet", "csv"]:
            for attempt in ("first", "again"):
                command = ["export", target, str(Path(name) / target), "--store", store.uri]
                started, used = time.perf_counter(), processor_seconds()
                program = "from orch.cli import main; main()"
                subprocess.run([sys.executable, "-c", program, *command], check=True, stdout=subprocess.DEVNULL)
                elapsed, used = time.perf_counter() - started, processor_seconds() - used
                print(f"{target}, {attempt}: {elapsed:.1f} s, {used:.1f} s of one processor", flush=True)


if __name__ == "__main__":
    main()
