"""Random bit flips in every kind of file of a real store: is each one noticed?

    python -m tests.store.bit_flips --flips 10000 --seed 0

A flip is noticed if a warning or an error names the file, `orch verify` finds it too, the file is set aside (in the
bundle, which cannot be changed, it stays), and every answer is that of a store without the file. A flip is harmless if
nothing is said and every answer is as before. Anything else is silent damage, and the exit code is 1.

`--before-checksums` takes the checksums out of all files first, as they were written before there were any. It shows
what the flips do then, and that this program can tell.
"""

import argparse
import hashlib
import json
import random
import re
import shutil
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from orch.analysis.bundle import bundle
from orch.core.errors import OrchError
from orch.core.safetensors_header import LENGTH_BYTES
from orch.store import Store, StoreWarning, bundled, curve_rows, integrity, table_reader, trial_row
from orch.store.records import parse_record
from orch.sweeps.experiments import angles
from orch.sweeps.scales import SMOKE
from orch.sweeps.selection import Results
from orch.training.checkpoints import model_bytes, snapshot_pieces
from orch.training.train import Training, train
from tests.small import small_trial
from tests.store.attempts import write_attempt, write_driver
from tests.store.damage import without_checksum
from tests.store.example import everything

NOTICED, HARMLESS, SILENT = "noticed", "harmless", "SILENT"
RECORDS = ("sweeps", "searches", "code", "rates", "kept", "drivers")


def make_store(folder: Path) -> Store:
    """Make a store with parts of three levels, checkpoints, weights and records.

    Two trials are trained, and the result of one is repeated for others, which makes the same files in less time.
    """
    store, trained = Store.open(folder), train(small_trial("rnn"))
    [cell] = angles.cells(SMOKE, Results.none())
    repeated = [replace(trained, trial=small_trial("rnn", init_seed=seed)) for seed in range(7)]
    for number, result in enumerate([*repeated, train(cell.trials[0])]):
        trial = result.trial
        attempt = f"attempt-{number}"
        write_attempt(store, attempt, "start", number, trial_id=trial.id)
        store.put_weights(trial.id, model_bytes(result))
        store.write_trial(trial_row(result, {"attempt_id": attempt}), curve_rows(result, attempt))
        write_attempt(store, attempt, "end", number + 0.5, "finished", trial_id=trial.id)
        if number in (0, 1):
            store.discard([trial.id], "a test")
        if number in (1, 3, 5):  # the first two parts become one of level 1, later one of level 2
            store.compact(min_parts=2)
    for seed in (7, 8):
        training = Training([small_trial("rnn", init_seed=seed)])
        training.advance(stop_at=5)
        store.put_checkpoint(training.snapshot().trial.id, snapshot_pieces(training.snapshot()))
    write_attempt(store, "lost", "start", 20)
    write_driver(store)
    asked = {"sweeps": ["demo"], "scale": "laptop", "where": [], "seconds": {"t": 1.0}, "waiting": 0}
    store.put_json("sweeps/demo.json", asked)
    store.put_json("searches/a/asked/0001.json", {"number": 1, "params": {"rank": 2}})
    store.put_json("searches/a/search.json", {"points": 1, "at": "2025"})
    store.put_json("code/d.json", {"text": "# ä sweep", "digest": "d"})
    store.put_json("rates/cpu.json", {"device": "cpu", "ratios": {"rnn": 1.25}})
    store.put_json("kept/k.json", {"at": "2025", "name": "k"})
    return store


def remove_checksums(folder: Path) -> None:
    """Rewrite all files as they were written before there were checksums."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.suffix == ".parquet":
            without_checksum(path)
        elif path.suffix == ".json":
            value = parse_record(path.read_bytes())
            value.pop("files", None)
            path.write_text(json.dumps(value))
        else:
            data = path.read_bytes()
            end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
            text = re.sub(rb'"crc32":"\w+",', b"", data[LENGTH_BYTES:end], count=1)
            path.write_bytes(len(text).to_bytes(LENGTH_BYTES, "little") + text + data[end:])


def answers(location: str, of_tables: bool) -> dict[str, str]:
    """Return digests of all that can be read from the tables of a store, or else of its tensors and records."""
    store = Store.open(location)
    found: dict[str, Any] = {}
    if of_tables:
        found |= everything(store)
        found |= {f"columns of {table}": store.read(table).schema.to_string() for table in found}
    else:
        found |= {path: store.get_checkpoint(Path(path).stem) for path in store.list_files("checkpoints")}
        found |= {path: store.get_weights(Path(path).stem) for path in store.list_files("weights")}
        found = {path: data for path, data in found.items() if data is not None}
        for folder in RECORDS:
            found |= {f"{folder}/{name}": value for name, value in store.list_json(folder).items()}
        if location == bundled.BUNDLED:
            found["listed"] = sorted(bundled.BundledFiles().listed.items())
    return {name: hashlib.sha256(repr(value).encode()).hexdigest() for name, value in found.items()}


class Flipper:
    """Flips bits of the files of one store, one at a time, and judges what its readers do about it."""

    def __init__(self, folder: Path, location: str):
        self.folder, self.location = folder, location
        self._before = [answers(location, of_tables) for of_tables in (False, True)]
        self._without: dict[Path, Any] = {}

    def kinds(self) -> Iterator[tuple[str, Path]]:
        """Yield every file with its kind: its table and level, or its folder."""
        prefix = "bundle: " if self.location == bundled.BUNDLED else ""
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            first, *rest = path.relative_to(self.folder).parts
            yield prefix + (f"{first}, level {rest[0]}" if path.suffix == ".parquet" else first), path

    def flip(self, path: Path, bit: int, by_lines: bool) -> str:
        """Flip a bit of a file, read what it may change, restore the file, and return the verdict.

        `by_lines` reads rows from the lines in footers wherever there are any, as is done for many parts.
        """
        right = path.read_bytes()
        wrong = bytearray(right)
        wrong[bit // 8] ^= 1 << bit % 8
        name, of_tables = path.relative_to(self.folder).as_posix(), path.suffix == ".parquet"
        without = self._answers_without(path, of_tables)
        path.write_bytes(wrong)
        try:
            is_found = self._is_found_damaged(name)
            with patch.object(table_reader, "_MANY", 0 if by_lines else 1 << 30):
                after, said = self._read(of_tables)
            moved = not path.exists()
        finally:
            shutil.rmtree(self.folder / "damaged", ignore_errors=True)
            path.write_bytes(right)
        in_place = self.location == bundled.BUNDLED
        if is_found and moved != in_place and name in said and after in (None, without):
            return NOTICED
        return HARMLESS if not said and not is_found and after == self._before[of_tables] else SILENT

    def _is_found_damaged(self, name: str) -> bool:
        """Return whether `orch verify` finds the damage."""
        try:
            found = integrity._examine(Store.open(self.location)._files, name, 1)
        except OrchError as error:  # the list of a bundle's files
            return str(error).startswith(name)
        return found is not None and found.condition is integrity.Condition.DAMAGED

    def _read(self, of_tables: bool) -> tuple[dict[str, str] | None, str]:
        """Return the answers, None if an error ended reading, and all that was said."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", StoreWarning)
            try:
                after, error = answers(self.location, of_tables), ""
            except OrchError as refused:
                after, error = None, str(refused)
        return after, "\n".join([*(str(each.message) for each in caught), error])

    def _answers_without(self, path: Path, of_tables: bool) -> Any:
        if path not in self._without:
            data = path.read_bytes()
            path.unlink()
            self._without[path] = answers(self.location, of_tables)
            path.write_bytes(data)
        return self._without[path]


def flip_bits(folder: Path, flips: int, seed: int, before_checksums: bool = False) -> dict[str, Counter[str]]:
    """Make a store and a bundle of it in a folder, flip so many bits one by one, and count verdicts by kind of file.

    Each kind of file gets the same number of flips, its files and their bits are drawn evenly.
    """
    store, small = make_store(folder / "store"), folder / "bundle"
    bundle([store], small)
    for each in (folder / "store", small) if before_checksums else ():
        remove_checksums(each)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    draw = random.Random(seed)
    with patch.object(bundled, "FOLDER", small):
        flippers = [Flipper(folder / "store", store.uri), Flipper(small, bundled.BUNDLED)]
        kinds: dict[str, list[tuple[Flipper, Path]]] = defaultdict(list)
        for flipper in flippers:
            for kind, path in flipper.kinds():
                kinds[kind].append((flipper, path))
        for number in range(flips):
            kind = sorted(kinds)[number % len(kinds)]
            flipper, path = draw.choice(kinds[kind])
            bit = draw.randrange(8 * path.stat().st_size)
            verdict = flipper.flip(path, bit, by_lines=draw.random() < 0.5)
            counts[kind][verdict] += 1
            if verdict == SILENT and not before_checksums:
                print(f"silent: bit {bit} of {path}", file=sys.stderr)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--before-checksums", action="store_true")
    arguments = parser.parse_args()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        counts = flip_bits(Path(folder), arguments.flips, arguments.seed, arguments.before_checksums)
    total: Counter[str] = sum(counts.values(), Counter())
    print(f"{'kind of file':32}{'flips':>8}{NOTICED:>10}{HARMLESS:>10}{SILENT:>10}")
    for kind, verdicts in [*sorted(counts.items()), ("all", total)]:
        numbers = "".join(f"{verdicts[verdict]:10}" for verdict in (NOTICED, HARMLESS, SILENT))
        print(f"{kind:32}{sum(verdicts.values()):8}{numbers}")
    sys.exit(bool(total[SILENT]))


if __name__ == "__main__":
    main()
