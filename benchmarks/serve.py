"""The live page on 10,000 trials and 1,000,000 curve rows, and what it costs a sweep that runs beside it.

- opening: from the start of `orch serve` to the last byte of its first page, then further pages of the same server, and
  `orch watch --once`. The results are invented. CPU seconds say what it takes on a machine that is busy otherwise.
- overhead: trials that do nothing (see overhead.py), in turns with and without a page that follows them, from the
  moment that workers run.

Usage: python benchmarks/serve.py [opening|overhead] [num_trials]
"""

import contextlib
import datetime
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator

from report import fill

from orch.store import Store

ORCH = [sys.executable, "-c", "from orch.cli import main; main()"]
ROUNDS = 4
_START = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)


def fill_store(folder: str) -> Store:
    """Write the trials, two attempt rows for each, and the record of the sweep that asked for them."""
    store = Store.open(folder)
    fill(store)
    ids = sorted(store.done())
    base = {"driver_id": "d", "at": _START, "host": "node", "pid": 1, "worker": "node:1", "device": "cpu"}
    ends = ({"event": "start"}, {"event": "end", "outcome": "finished", "step": 100})
    store.write("attempts", [base | end | {"attempt_id": key, "trial_id": key} for key in ids for end in ends])
    values = {"sweeps": ["all"], "scale": "paper", "where": [], "at": "2026-11-01", "waiting": 0, "code": []}
    store.put_json("sweeps/all-paper.json", values | {"seconds": dict.fromkeys(ids, 12.5)})
    store.compact(min_parts=2)
    return store


@contextlib.contextmanager
def served(folder: str) -> Iterator[tuple[str, int]]:
    """Run `orch serve` on a store, and return the address of its page and its process id."""
    process = subprocess.Popen([*ORCH, "serve", "--store", folder, "--port", "0"], stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        yield re.search(r"http://\S+", line)[0].rstrip("/"), process.pid
    finally:
        process.terminate()
        process.wait()
        process.stderr.close()


def get(address: str) -> tuple[float, int]:
    began = time.perf_counter()
    with urllib.request.urlopen(address) as answer:
        size = len(answer.read())
    return time.perf_counter() - began, size


def cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def opening() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = fill_store(folder)
        trial = min(store.done())
        print(f"{len(store.done()):,} trials, {store.read('curves').num_rows:,} curve rows, compacted")
        sql = urllib.parse.quote(
            "SELECT model, avg(curves.validation_accuracy) FROM curves JOIN trials USING (trial_id) GROUP BY ALL"
        )
        firsts, cpu, watches, others = [], [], [], {}
        for _ in range(ROUNDS):
            began = time.perf_counter()
            with served(folder) as (address, pid):
                _, size = get(f"{address}/")
                firsts.append(time.perf_counter() - began)
                cpu.append(cpu_seconds(pid))
                for path in ("/", f"/trial/{trial}", "/table/trials", "/table/cells", f"/query?sql={sql}"):
                    others.setdefault(path.partition("?")[0], []).append(get(f"{address}{path}")[0])
            began = time.perf_counter()
            subprocess.run([*ORCH, "watch", "--once", "--store", folder], check=True, stdout=subprocess.DEVNULL)
            watches.append(time.perf_counter() - began)
        print(
            f"orch serve, start to first page ({size / 1e6:.1f} MB): {statistics.median(firsts):.2f} s,"
            f" {statistics.median(cpu):.2f} s of CPU"
        )
        for path, seconds in others.items():
            print(f"  then {path}: {statistics.median(seconds):.2f} s")
        print(f"orch watch --once: {statistics.median(watches):.2f} s")


@contextlib.contextmanager
def followed(folder: str, quiet: bool = False) -> Iterator[None]:
    """Keep a page of the store open, as a browser does."""
    Store.open(folder).put_json(
        "sweeps/none.json", {"sweeps": [], "scale": "smoke", "where": [], "seconds": {}, "waiting": 0}
    )
    with served(folder) as (address, pid):
        get(f"{address}/")
        stream = urllib.request.urlopen(f"{address}/events?page=/")
        sizes: list[int] = []
        reader = threading.Thread(target=lambda: sizes.extend(map(len, stream)), daemon=True)
        reader.start()
        before = cpu_seconds(pid)
        yield
        used = cpu_seconds(pid) - before
    if not quiet:
        print(f"    (the server used {used:.2f} s of CPU, the page received {sum(sizes) / 1e6:.2f} MB of news)")


@contextlib.contextmanager
def closed_again(folder: str) -> Iterator[None]:
    """Open a page and close it before the trials begin: Ray ends idle workers while a server starts, here as there."""
    with followed(folder, quiet=True):
        pass
    yield


def overhead(num_trials: int) -> None:
    from overhead import ours

    from orch.running.machines import connected

    times: dict[str, list[float]] = {"without": [], "with": []}
    with connected(2) as machines:
        ours(num_trials // 4, machines)  # starts the workers
        beside = [("without", closed_again), ("with", followed)]
        for _ in range(ROUNDS):
            for name, context in beside:
                times[name].append(ours(num_trials, machines, context)[2])
            beside.reverse()
    without, beside = (statistics.median(times[name]) for name in ("without", "with"))
    print(f"per trial: {1e3 * without:.1f} ms without a page, {1e3 * beside:.1f} ms with one: {beside / without:.3f} x")
    print("  rounds:", {name: [f"{1e3 * each:.1f}" for each in values] for name, values in times.items()})


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what != "overhead":
        opening()
    if what != "opening":
        overhead(int(sys.argv[2]) if len(sys.argv) > 2 else 400)
