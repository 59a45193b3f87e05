"""The status of a store, counted from its tables and from the records of its sweeps."""

import datetime
import json

import pyarrow as pa

from orch.core.records import seconds_by_trial, trials_of_cell
from orch.running.requests import Request, record
from orch.running.status import read_status
from orch.serving.overview import OverviewReader
from orch.store import Store
from tests.finished_trials import finish
from tests.store.attempts import write_attempt, write_driver

SWEEP = """
import orch

TITLE = "Small"
cells = orch.grid(models=["rnn", "lstm"], tasks=["even_pairs"], learning_rates=(1e-3,), seeds=3, width=16, steps=100)
"""


def test_records_of_this_version_and_of_earlier_ones_give_the_same_status(tmp_path):
    (tmp_path / "small.py").write_text(SWEEP)
    store = Store.open(tmp_path / "runs")
    request = Request.read([str(tmp_path / "small.py")], "laptop", ())
    plan = request.plan(None)
    record(store, request, plan)
    first, second, third, *_ = (planned.trial for planned in plan.trials)
    finish(store, [first])
    write_attempt(store, "a", "start", 0, trial_id=second.id)
    write_attempt(store, "a", "end", 1, "failed", trial_id=second.id)
    write_driver(store, claims=[third.id, first.id])
    new, shown = read_status(store), OverviewReader(store).read()
    (status,) = new.sweeps
    assert (status.total, status.done, status.failed, status.running, status.to_do) == (6, 1, 1, 1, 3)
    assert (new.distinct.running, new.distinct.to_do, new.distinct.failed) == (1, 3, 1)

    ((name, values),) = store.list_json("sweeps").items()
    assert set(seconds_by_trial(values)) == {planned.id for planned in plan.trials}
    cells = [cell | {"trials": trials_of_cell(cell)} for cell in values["cells"]]
    earlier = {"seconds": seconds_by_trial(values), "cells": cells}
    assert earlier["seconds"] != values["seconds"]
    assert earlier["cells"] != values["cells"]
    store.put_json(f"sweeps/{name}.json", values | earlier)
    again = Store.open(store.uri)
    assert read_status(again) == new
    assert OverviewReader(again).read().results.grids == shown.results.grids


def test_a_store_without_trials_or_without_sweeps_has_a_status(tmp_path):
    store = Store.open(tmp_path / "runs")
    empty = {"sweeps": ["main"], "where": [], "scale": "smoke", "waiting": 2}
    store.put_json("sweeps/one.json", empty | {"seconds": []})
    store.put_json("sweeps/two.json", empty | {"seconds": {}})
    assert [(each.total, each.done, each.to_do) for each in read_status(store).sweeps] == [(2, 0, 0)] * 2
    assert read_status(Store.open(tmp_path / "none")).sweeps == []


def test_trials_of_the_last_hour_are_those_with_a_time_in_it(tmp_path):
    store, now = Store.open(tmp_path / "runs"), datetime.datetime.now(datetime.UTC)
    for planned, age in zip(Request(("demo",), "laptop").plan(None).trials, (7200, 1800, 600), strict=False):
        finish(store, [planned.trial], finished_at=now - datetime.timedelta(seconds=age))
    rows = store.read("trials")
    without = rows.set_column(
        rows.column_names.index("finished_at"), "finished_at", pa.nulls(3, pa.timestamp("us", "UTC"))
    )
    store.append("trials", without.set_column(0, "trial_id", pa.array(["a", "b", "c"])))
    found = read_status(store)
    assert store.read("trials").num_rows == 6
    assert found.finished_last_hour == 2
    assert 1800 <= found.seconds_last_hour < 1860
    assert 1.9 < found.per_hour < 2.1
    json.dumps(found.to_dict())
