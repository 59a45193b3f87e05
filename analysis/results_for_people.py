"""The table of `orch results` for people and for papers: fewer columns, and a caption that says what they are."""

from collections.abc import Sequence

import pyarrow as pa

from orch.analysis.aggregate import where_chosen
from orch.analysis.arrow_tables import to_table
from orch.analysis.published import OOD, VALIDATION
from orch.analysis.spread import Spread
from orch.analysis.tables.entries import decimals
from orch.sweeps.measured import length_of

_WHOLE = ("steps_trained", "seconds")
"""Metrics that are shown as whole numbers from 10 on."""


def for_people(found: pa.Table, by: Sequence[str], metric: str = OOD, spread: Spread = Spread.SD) -> pa.Table:
    """Return the results in fewer columns: related numbers share a column, and empty columns are dropped."""
    rows = found.to_pylist()
    has_spread = any(row[spread.column] is not None for row in rows)
    mean = f"mean ± {spread.heading}" if has_spread else "mean"
    shown = [
        {name: row[name] for name in by}
        | {
            "trials": f"{row['done']} of {row['planned']}" if row["done"] < row["planned"] else str(row["done"]),
            "best": _number(row["best"], metric),
            "rate": row["chosen_rate"],
            "chosen at": row["chosen_at"],
            mean: _with_spread(row["mean"], row[spread.column], metric),
            "seeds": row["seeds"],
            "remark": row["remark"],
        }
        for row in rows
    ]
    kinds = {"rate": pa.float64(), "seeds": pa.int64()} | {name: found.schema.field(name).type for name in by}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in shown[0]])
    always = ("best", mean)
    filled = [name for name in shown[0] if name in always or any(row[name] not in (None, "") for row in shown)]
    return to_table(shown, schema).select(filled)


def caption(found: pa.Table, metric: str, spread: Spread = Spread.SD) -> str:
    """Return a caption that says what the numbers of a table of results are."""
    places = where_chosen(found["chosen_at"].to_pylist())
    has_spread = any(value is not None for value in found[spread.column].to_pylist())
    plus_minus = f" ± {spread.words}" if has_spread else ""
    chosen = f"the learning rate chosen {places}" if places else "the chosen learning rate"
    return f"{_words(metric)}. Best: over learning rates and seeds. Mean{plus_minus}: over the seeds of {chosen}." + (
        " A dash: not measured." if None in found["best"].to_pylist() else ""
    )


def _words(metric: str) -> str:
    length = length_of(metric)
    scale = " (0 is chance, 1 is perfect)"
    if length is not None:
        return f"Accuracy at {length} inputs{scale}"
    return {
        OOD: f"Accuracy at the length of the test{scale}",
        VALIDATION: f"Accuracy on the validation set{scale}",
        "steps_trained": "Training steps",
        "seconds": "Seconds of training and testing",
    }[metric]


def _number(value: float | None, metric: str) -> str | None:
    if value is None:
        return None
    return f"{value:,.0f}" if metric in _WHOLE and value >= 10 else decimals(value)


def _with_spread(mean: float | None, spread: float | None, metric: str) -> str | None:
    text = _number(mean, metric)
    return text if text is None or spread is None else f"{text} ± {_number(spread, metric)}"
