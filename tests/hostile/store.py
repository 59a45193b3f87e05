"""A store with one of everything: results, failures, a live driver, sweeps, code of a user, searches and logs."""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

from orch.running.driver_log import open_driver_log
from orch.running.requests import Request, record
from orch.store import Store
from orch.store.attempts import Attempt, AttemptError, Outcome
from orch.store.drivers import process_state
from tests.serving.small_store import TRIALS, finish_trials, record_sweep

OWN = """import orch

TITLE = "Of one's own"
cells = orch.grid(models=["bilinear"], tasks=["parity_check"], learning_rates=1e-3, seeds=1, width=8)
"""
QUESTION = {
    "task": "parity_check", "model": "bilinear", "fixed": {"steps": 100}, "vary": ["width=8,16,32"], "seeds": 1,
    "metric": "accuracy_100",
    "objective": "mean", "smallest": {"name": "width", "at_least": 0.9}, "grace": None, "sampler_seed": 0,
}  # fmt: skip


def fill(root: Path, text: str = "ordinary") -> Store:
    """Fill a store in which every text that may be anything is `text`."""
    store = Store.open(root)
    finish_trials(store, TRIALS[:4], accuracy=0.9)
    record_sweep(store)
    failed = Attempt(attempt_id="bad", trial_id=TRIALS[5].id, driver_id="gone", device=text)
    error = AttemptError(error_type=text, error_signature=text, error_message=text, traceback=f"Traceback:\n  {text}")
    store.write("attempts", [failed.start_row(), failed.end_row(Outcome.FAILED, 3, error)])
    store.write("withdrawn", [{"trial_id": "gone", "attempt_id": "x", "reason": text, "at": datetime.now(UTC)}])
    running = {
        "trial_id": TRIALS[6].id,
        "step": 5,
        "steps": 10,
        "train_loss": 1.0,
        "validation_accuracy": 0.5,
        "label": text,
    }
    values = {
        "driver_id": "live", "host": os.uname().nodename, "pid": os.getpid(),
        "process_start": process_state(os.getpid())[1],
        "started_at": text, "sweeps": text, "began": time.time(), "beat": time.time() + 1e8, "claims": [TRIALS[6].id],
        "counts": {"seconds_left": 60.0, "trials": [running | {"curve": [[5, 1.0, 0.5]]}], "running": 1},
    }  # fmt: skip
    store.put_json("drivers/live.json", values)
    started = Attempt(attempt_id="now", trial_id=TRIALS[6].id, driver_id="live", device=text)
    store.write("attempts", [started.start_row() | {"worker": text}])
    store.put_json(
        "rates/cpu.json",
        {"device": "cpu", "host": text, "ratios": {"bilinear": 1.5}, "packs": {"bilinear": {"1": 0.01}}},
    )
    search = {"question": QUESTION, "points": 1, "at": "2026-11-01", "code": []}
    store.put_json("searches/abc123/search.json", search)
    point = {"number": 1, "params": {"width": 8}, "to_the_end": False, "found": []}
    store.put_json("searches/abc123/asked/0001-aaaa.json", point)
    told = {
        "number": 2,
        "params": {"width": 16},
        "state": "finished",
        "value": 0.95,
        "test": 0.5,
        "steps": {"a": 100},
        "spent": 100,
    }
    told |= {"rungs": [[100, 0.9]], "message": text, "at": "2026-11-01T00:00:00"}
    store.put_json("searches/abc123/told/0002-bbbb.json", told)
    own = root.parent / "own_sweep.py"
    own.write_text(OWN)
    request = Request.read([str(own)], "smoke", ())
    record(store, request, request.plan(store))
    own.unlink()
    store.put_json(
        "kept/bilinear-1.json", {"kind": "model", "name": "nosuch", "revision": 1, "counts_as": 2, "at": "2026"}
    )
    cell = dict.fromkeys(("model", "variant", "task", "problem"), text)
    cells = [cell | {"settings": {"width": 8, text: text}, "trials": [TRIALS[0].id]}]
    values = {"sweeps": [text], "scale": "laptop", "where": [text], "at": text, "code": [], "cells": cells}
    store.put_json("sweeps/own.json", values | {"seconds": {TRIALS[0].id: 1.0}, "waiting": 1, "titles": {text: text}})
    log = open_driver_log(store, "gone")
    log.event(text, trials=[text], fact=text)
    log.flush(now=True)
    log = open_driver_log(store, "live")
    log.event(text, trials=[text])
    log.flush(now=True)
    # The log as a hostile program writes it: JSON need not hide control characters above 127, nor be JSON.
    path = root / "logs" / "driver-live.jsonl"
    path.write_text(
        path.read_text() + json.dumps({"at": text, "event": text, text: text}, ensure_ascii=False) + f"\n{text}\n"
    )
    return store
