"""Finished trials that were never trained, for the tests of the store."""

import datetime
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from orch.core.safetensors_header import NO_CHECKSUM, with_checksum
from orch.store import Store, curve_rows, trial_row
from orch.sweeps.result import CurvePoint, Result, StopReason
from orch.sweeps.trial import make_trial

START = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
POINTS = 3


def example_result(seed: int = 0, model: str = "bilinear", accuracy: float = 0.5, **settings: Any) -> Result:
    trial = make_trial("modular_addition", model, init_seed=seed, width=16, **settings)
    return Result(
        trial=trial,
        stop_reason=StopReason.BUDGET,
        steps=300,
        seconds=1.5,
        curve=tuple(CurvePoint(100 * n, 2.0 / n, 1.0 / n, accuracy, 0.5 * n) for n in range(1, POINTS + 1)),
        test_accuracy=dict.fromkeys(trial.tested_lengths, accuracy),
        majority=dict.fromkeys(trial.tested_lengths, 0.125),
        parameters={},
    )


def write_example(
    store: Store, seed: int = 0, attempt: str = "first", minute: float = 0, accuracy: float = 0.5, **settings: Any
) -> str:
    """Write a trial that finished this many minutes after `START`, and return its id."""
    result = example_result(seed, accuracy=accuracy, **settings)
    attempt_id = f"{attempt}-{seed}"
    finished = START + datetime.timedelta(minutes=minute)
    store.write_trial(
        trial_row(result, {"attempt_id": attempt_id, "finished_at": finished}), curve_rows(result, attempt_id)
    )
    return result.trial.id


def saved(data: bytes) -> bytes:
    """Return bytes as the only tensor of a file that is saved as checkpoints and weights are."""
    tensor = {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}
    header = json.dumps({"__metadata__": NO_CHECKSUM | {"orch": "{}"}, "x": tensor}, separators=(",", ":")).encode()
    return b"".join(with_checksum([len(header).to_bytes(8, "little"), header, data]))


def ids(seeds: Iterable[int]) -> set[str]:
    return {example_result(seed).trial.id for seed in seeds}


def parts(root: Path, table: str) -> list[Path]:
    return sorted((root / table).rglob("[!.]*.parquet"))


def everything(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Return all rows that count, in an order that does not depend on the parts they are in."""
    return {
        table: sorted(store.read(table).to_pylist(), key=repr)
        for table in ("trials", "curves", "attempts", "withdrawn")
    }
