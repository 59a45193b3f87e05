"""Training steps of an older revision of the project against those of this one, in one run on one core.

The older revision is checked out aside and removed afterwards. Two processes, one for each, take turns, and the fastest
turn of each counts, in CPU time, so that other processes disturb little. Times are milliseconds per trial and step,
for trials alone and in packs of 9 and 27. Where the older revision cannot pack a model, its trials train alone, and
packs are compared with that. Drawing data, once in 64 steps, is not counted.

Usage: python benchmarks/against.py REVISION [--quick] [--width 256] [--pack 9] [--model mamba]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"block diagonal ({b})": ("block_diagonal", {"block_size": b}) for b in (1, 2, 8, 64)},
    "rotation": ("rotation", {}),
    "factored (256)": ("factored", {"rank": 256}),
    "rnn": ("rnn", {}),
    "lstm": ("lstm", {}),
    "bilinear": ("bilinear", {}),
    "mamba (1 layer)": ("mamba", {"layers": 1}),
    "transformer (1 layer)": ("transformer", {"layers": 1}),
}
WIDTHS, PACKS = (64, 256), (1, 9, 27)
TURN_SECONDS, MOST_STEPS = 0.05, 32
"""Length of a turn. Data are drawn once in 64 steps, so at least every other turn draws none."""
MOST_BYTES = 1.5e9
"""Weights, gradients and moments of the largest pack that is measured."""
SERVE = "--serve"
"""Makes this file run one of the two sides."""


class Side:
    """A process that trains with the package in one checkout, when it is told to."""

    def __init__(self, checkout: Path, cache: Path):
        environment = os.environ | {
            "PYTHONPATH": str(checkout / "src"),
            "ORCH_KERNEL_CACHE": str(cache),
            "OMP_NUM_THREADS": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).resolve()), SERVE],  # no file beside this one hides a package
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=cache,
        )

    def ask(self, **request: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("one side has failed: see its error above")
        return json.loads(answer)

    def __enter__(self) -> "Side":
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()


def serve() -> None:
    """Answer requests: open a pack, then take steps and say how long one took."""
    import torch

    from orch.sweeps.trial import make_trial
    from orch.training.train import Training

    def open_pack(model: str, settings: dict[str, Any], size: int) -> Training | None:
        """Return `size` trials in training; None if that is no pack that this revision trains, or too large a one."""
        grid = [
            make_trial(
                "modular_addition", model, modulus=5, learning_rate=rate, init_seed=seed, data_seed=seed, **settings
            )
            for seed in range(9)
            for rate in (1e-3, 1e-4, 1e-5)
        ]
        num_bytes = 16 * size * grid[0].model.num_parameters(grid[0].vocabulary)
        return Training(grid[:size]) if size == 1 or (grid[0].model.packs and num_bytes < MOST_BYTES) else None

    torch.set_num_threads(1)
    training = None
    for line in sys.stdin:
        request = json.loads(line)
        if "model" in request:
            training = None  # its memory is for the next one
            training = open_pack(**request)
            print(json.dumps(training is not None), flush=True)
            continue
        assert training
        started = time.process_time()
        for _ in range(request["steps"]):
            training._train_step()
        print(json.dumps((time.process_time() - started) / request["steps"]), flush=True)


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """Check a revision out into a temporary folder, which is removed afterwards."""
    git = ["git", "-C", str(PROJECT)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "revision"
        added = subprocess.run([*git, "worktree", "add", "--quiet", "--detach", str(place), revision])
        if added.returncode:
            raise SystemExit(f"git cannot check out {revision}: name a commit, branch or tag of this repository")
        try:
            yield place
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(place)], check=True)


def fastest(sides: list[Side], turns: int) -> list[float]:
    """Return the seconds of the fastest step of each side."""
    steps = []
    for side in sides:
        side.ask(steps=2)  # compiles
        steps.append(min(1 + int(TURN_SECONDS / side.ask(steps=2)), MOST_STEPS))
    times = [[side.ask(steps=its) for side, its in zip(sides, steps, strict=True)] for _ in range(turns)]
    return [min(each) for each in zip(*times, strict=True)]


def compare(name: str, width: int, sizes: list[int], old: Side, new: Side, turns: int) -> None:
    """Print a row for each size of pack."""
    model, settings = MODELS[name]
    old_alone = None
    for size in sizes:
        settings = settings | {"width": width}
        packs = [side.ask(model=model, settings=settings, size=size) for side in (old, new)]
        if not packs[1]:
            continue
        times = fastest([side for side, has in zip((old, new), packs, strict=True) if has], turns)
        per_trial = [1e3 * seconds / size for seconds in times]
        if size == 1:
            old_alone = per_trial[0]
        before = per_trial[0] if packs[0] else old_alone
        note = "" if packs[0] else "  (trials of the older revision alone)"
        if before is not None:
            columns = f"{before:9.2f}{per_trial[-1]:9.2f}{before / per_trial[-1]:8.2f}x{note}"
            print(f"{width:5}  {name:24}{size:5}{columns}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("revision", help="commit, branch or tag to compare with")
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--width", type=int, action="append", help=f"default: {WIDTHS}")
    parser.add_argument("--pack", type=int, action="append", choices=PACKS, help=f"default: {PACKS}")
    parser.add_argument("--model", action="append", help="models whose name begins so; default: all")
    options = parser.parse_args()
    names = [name for name in MODELS if name.startswith(tuple(options.model or [""]))]
    sizes = sorted({1, *(options.pack or PACKS)})  # alone first, with which packs may be compared
    with ExitStack() as opened:
        caches = [Path(opened.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        places = opened.enter_context(checked_out(options.revision)), PROJECT
        old, new = (opened.enter_context(Side(*each)) for each in zip(places, caches, strict=True))
        print(f"milliseconds of CPU time per trial and step, {options.revision} and this one")
        print(f"width  {'model':24}{'pack':>5}{'old':>9}{'new':>9}{'ratio':>9}")
        for width in options.width or WIDTHS:
            for name in names:
                compare(name, width, sizes, old, new, turns=5 if options.quick else 15)


if __name__ == "__main__":
    serve() if SERVE in sys.argv[1:] else main()
