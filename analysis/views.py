"""Tables that are computed, not stored: published numbers, plan, comparison and reproduction."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from orch.analysis.arrow_tables import column, to_table
from orch.analysis.cells import CHOSEN_AT, STATISTICS, statistics_of
from orch.analysis.comparison import Comparison
from orch.analysis.published import TABLES, PublishedCell, published_cells
from orch.analysis.reproduction import Reproduced, Reproduction
from orch.planning.plan import Plan, TrialState

_TEXTS = pa.list_(pa.field("element", pa.string()))

_CELL = (
    # Not `table`, which SQL would want in quotes.
    column("table_name", pa.string(), "the published table"),
    column("title", pa.string(), "title of that table"),
    column("statistic", pa.string(), "how its numbers summarise several runs"),
    column("sweep", pa.string(), "the sweep whose trials are compared with it"),
    column("task", pa.string(), "name of the task"),
    column("model", pa.string(), "name of the model"),
    column("variant", pa.string(), "the model's variant as the table calls it: block size, layers or rank"),
    column("additive", pa.string(), "what the recurrence adds: none, constant, input or input+constant"),
    column("modulus", pa.int64(), "modulus of the task, or number of states"),
    column("train_examples", pa.int64(), "size of the fixed training set; 0 for fresh samples at every step"),
    column("train_length", pa.int64(), "most inputs in a training sample"),
    column("split", pa.string(), "what was measured: validation, or ood at the length of the test"),
)

_OF_KEY = ("task", "model", "variant", "modulus")
_COUNTS = ("num_seeds", "num_planned", "num_done", "num_failed", "num_diverged")

PUBLISHED = pa.schema([*_CELL, column("accuracy", pa.float64(), "the published accuracy; 0 is chance, 1 is perfect")])

COMPARISON = pa.schema(
    [
        *_CELL,
        column("reading", pa.string(), "name of our cell, where the paper leaves open which of several is meant"),
        column("published", pa.float64(), "the published accuracy; 0 is chance, 1 is perfect"),
        column("ours", pa.float64(), "our best over learning rates and seeds, as in the paper; null if there is none"),
        column("difference", pa.float64(), "ours less the published accuracy"),
        column("best_trial", pa.string(), "the trial that ours comes from"),
        column("learning_rate", pa.float64(), "the learning rate chosen by the mean accuracy at `chosen_at`"),
        CHOSEN_AT,
        column("mean", pa.float64(), "mean accuracy over the seeds of that learning rate"),
        column("spread", pa.float64(), "standard deviation over these seeds; null if there is only one"),
        column("num_seeds", pa.int64(), "trials finished with that learning rate"),
        *STATISTICS,
        column("num_planned", pa.int64(), "trials that the cell should have"),
        column("num_done", pa.int64(), "finished trials"),
        column("num_failed", pa.int64(), "trials whose last attempt went wrong"),
        column("num_diverged", pa.int64(), "finished trials that diverged"),
        column("status", pa.string(), "complete, partial, failed or missing"),
        column("remark", pa.string(), "unfinished, failed or diverged trials; empty if there are none"),
        column("repeats", pa.string(), "an earlier table with the same number, which then counts only there"),
        column("trial_ids", _TEXTS, "the trials of the cell, finished or not"),
    ]
)

PLAN = pa.schema(
    [
        column("trial_id", pa.string(), "the trial; null while it waits for its learning rate"),
        column("sweeps", _TEXTS, "the sweeps that ask for it"),
        column("label", pa.string(), "the trial in a few words"),
        column("model", pa.string(), "name of the model"),
        column("task", pa.string(), "name of the task"),
        column("modulus", pa.int64(), "modulus of the task, or number of states"),
        column("learning_rate", pa.float64(), "learning rate; null while it is not known"),
        column("init_seed", pa.int64(), "seed of the initial parameters"),
        column("state", pa.string(), "done, failed, to do or waiting"),
        column("seconds", pa.float64(), "estimated time on one device; 0 for a finished trial"),
        column("basis", pa.string(), "basis of that estimate: measured, scaled or assumed"),
    ]
)

TALLIES = pa.schema(
    [
        column("table", pa.string(), "the published table; a number in several tables counts in the first"),
        column("published", pa.int64(), "distinct published numbers"),
        column("attempted", pa.int64(), "numbers with every learning rate trained to its end, or learned as published"),
        column("within", pa.int64(), "attempted, and ours differs by no more than the tolerance"),
        column("within_learned", pa.int64(), "within, and published at 0.95 or more"),
        column("better", pa.int64(), "attempted, and ours is better by more"),
        column("worse", pa.int64(), "attempted, and ours is worse by more"),
        column("begun", pa.int64(), "some trials are finished, but too few to count as attempted"),
    ]
)

REPRODUCED = pa.schema(
    [
        column("outcome", pa.string(), "within, better or worse; begun if its budget is not spent or it diverged"),
        column("table", pa.string(), "the published table; the first of several with the number"),
        *(each for each in _CELL if each.name in _OF_KEY),
        column("additive", pa.string(), "what the recurrence adds; null if nothing"),
        column("train_examples", pa.int64(), "size of the fixed training set; null for fresh samples at every step"),
        column("train_length", pa.int64(), "inputs in a sample of that set"),
        column("reading", pa.string(), "name of our cell, where the paper leaves open which of several is meant"),
        column("published", pa.float64(), "the published accuracy; 0 is chance, 1 is perfect"),
        column("also", pa.string(), "other values that the paper gives for the number; null if there are none"),
        column("ours", pa.float64(), "our best over learning rates and seeds, as in the paper"),
        column("difference", pa.float64(), "ours less the published accuracy"),
        column("learning_rate", pa.float64(), "learning rate of the best trial"),
        column("steps_trained", pa.int64(), "training steps of the best trial"),
        column("stop_reason", pa.string(), "why the best trial ended"),
        column("trials", pa.string(), "all finished trials of the cell, the best first"),
    ]
)


def published_table() -> pa.Table:
    """Return a row for each published number."""
    return to_table([_cell(each) | {"accuracy": each.accuracy} for each in published_cells()], PUBLISHED)


def comparison_table(comparisons: Iterable[Comparison]) -> pa.Table:
    """Return a row for each comparison."""
    return to_table(map(_comparison, comparisons), COMPARISON)


def plan_table(plan: Plan) -> pa.Table:
    """Return a row for each planned trial."""
    rows = [
        {
            "trial_id": planned.id or None,
            "sweeps": planned.sweeps,
            "label": planned.trial.label,
            "model": planned.trial.model.name,
            "task": planned.trial.task.name,
            "modulus": planned.trial.task.modulus,
            "learning_rate": None if planned.state is TrialState.WAITING else planned.trial.learning_rate,
            "init_seed": planned.trial.init_seed,
            "state": planned.state,
            "seconds": planned.seconds,
            "basis": planned.basis,
        }
        for planned in plan.trials
    ]
    return to_table(rows, PLAN)


def tally_table(found: Reproduction) -> pa.Table:
    """Return the counts of each table, and the total in the last row."""
    names = [name for name in TALLIES.names if name != "table"]
    rows = [
        {"table": each.table} | {name: getattr(each, f"num_{name}") for name in names}
        for each in (*found.tallies, found.total)
    ]
    return to_table(rows, TALLIES)


def reproduced_table(cells: Iterable[Reproduced]) -> pa.Table:
    """Return a row for each number that has finished trials."""
    return to_table((_reproduced(each) for each in cells if each.comparison.finished), REPRODUCED)


def _reproduced(cell: Reproduced) -> dict[str, Any]:
    each = cell.comparison
    key, best = each.published.key, each.finished[0]
    others = [number for number in each.also if number.accuracy != each.published.accuracy]
    return {
        "outcome": cell.outcome,
        "table": cell.table,
        **{name: getattr(key, name) for name in _OF_KEY},
        "additive": None if key.additive == "none" else key.additive,
        "train_examples": key.train_examples or None,
        "train_length": key.train_length if key.train_examples else None,
        "reading": each.reading,
        "published": each.published.accuracy,
        "also": ", ".join(f"{number.accuracy:g} in {number.table}" for number in others) or None,
        "ours": each.ours,
        "difference": each.difference,
        **{name: best[name] for name in ("learning_rate", "steps_trained", "stop_reason")},
        "trials": " ".join(row["trial_id"] for row in each.finished),
    }


def _cell(number: PublishedCell) -> dict[str, Any]:
    table = TABLES[number.table]
    about = {"table_name": table.name, "title": table.title, "statistic": table.statistic, "sweep": table.sweep}
    return about | number.key._asdict() | {"split": number.split}


def _comparison(each: Comparison) -> dict[str, Any]:
    return {
        **_cell(each.published),
        **{name: getattr(each.summary, name) for name in ("learning_rate", "chosen_at", *_COUNTS, "status", "remark")},
        **{name: each.score and getattr(each.score, name) for name in ("best_trial", "mean", "spread")},
        **statistics_of(each.score),
        "reading": each.reading,
        "published": each.published.accuracy,
        "ours": each.ours,
        "difference": each.difference,
        "repeats": each.repeats and each.repeats.table,
        "trial_ids": each.trial_ids,
    }
