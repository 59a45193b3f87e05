"""The table of `orch results` for people and for papers: fewer columns, and a caption that says what they are."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from orch.analysis.aggregate import where_chosen
from orch.analysis.arrow_tables import to_table
from orch.analysis.published import OOD, VALIDATION
from orch.analysis.spread import Spread
from orch.analysis.statistics import BEST_OF, Share
from orch.analysis.tables.entries import decimals
from orch.core.counted import counted
from orch.sweeps.measured import HORIZON_METRICS, length_of

_WHOLE = ("steps_trained", "seconds")
"""Metrics that are shown as whole numbers from 10 on."""


def for_people(
    found: pa.Table, by: Sequence[str], metric: str = OOD, spread: Spread = Spread.SD, best_of: int = BEST_OF
) -> pa.Table:
    """Return the results in fewer columns: related numbers share a column, and empty columns are dropped."""
    rows = found.to_pylist()
    has_spread = any(row[spread.column] is not None for row in rows)
    any_share = any(row["share_learned"] is not None for row in rows)
    mean = _heading(spread) if has_spread else "mean"
    shown = [
        {name: row[name] for name in by}
        | {
            "trials": f"{row['done']} of {row['planned']}" if row["done"] < row["planned"] else str(row["done"]),
            "best": _number(row["best"], metric),
            f"best of {best_of}": _number(row["expected_best"], metric),
            "rate": row["chosen_rate"],
            "chosen at": row["chosen_at"],
            mean: _with_interval(row, metric) if spread is Spread.BOOTSTRAP else _with_spread(row, spread, metric),
            "seeds": None if any_share else row["seeds"],
            "seeds that learn": _share(row),
            "perfect, then fail": _failing(row),
            "remark": row["remark"],
        }
        for row in rows
    ]
    kinds = {"rate": pa.float64(), "seeds": pa.int64()} | {name: found.schema.field(name).type for name in by}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in shown[0]])
    always = ("best", mean)
    filled = [name for name in shown[0] if name in always or any(row[name] not in (None, "") for row in shown)]
    return to_table(shown, schema).select(filled)


def for_paper(shown: pa.Table) -> pa.Table:
    """Leave out where the rates were chosen if all rows say the same, because the caption says it."""
    constant = "chosen at" in shown.column_names and len(set(shown["chosen at"].to_pylist()) - {None}) == 1
    return shown.drop_columns(["chosen at"]) if constant else shown


def caption(found: pa.Table, metric: str, spread: Spread = Spread.SD, best_of: int = BEST_OF) -> str:
    """Return a caption that says what the numbers of a table of results are."""
    places = where_chosen(found["chosen_at"].to_pylist())
    has_spread = any(value is not None for value in found[spread.column].to_pylist())
    interval = " and its 95% bootstrap interval" if spread is Spread.BOOTSTRAP else f" ± {spread.words}"
    chosen = f"the learning rate chosen {places}" if places else "the chosen learning rate"
    sentences = [
        f"{_words(metric)}. Best: over learning rates and seeds.",
        f"Best of {best_of}: the expected best of {counted(best_of, 'trial')}." if _any(found, "expected_best") else "",
        f"Mean{interval if has_spread else ''}: over the seeds of {chosen}.",
        "Seeds that learn: 0.95 or more at that rate, with the 95% Wilson interval of their share."
        if _any(found, "share_learned")
        else "",
        "Perfect, then fail: seeds with 0.99 or more at trained lengths and less than 0.95 at the test length; a dash"
        " where none is perfect."
        if _any(found, "share_failing")
        else "",
        "Rows that mix cells have no such shares." if any(number > 1 for number in found["cells"].to_pylist()) else "",
        "A dash: not measured." if None in found["best"].to_pylist() else "",
    ]
    return " ".join(filter(None, sentences))


def _any(found: pa.Table, name: str) -> bool:
    return any(value is not None for value in found[name].to_pylist())


def _words(metric: str) -> str:
    length = length_of(metric)
    scale = " (0 is chance, 1 is perfect)"
    if length is not None:
        return f"Accuracy at {length} inputs{scale}"
    if metric in HORIZON_METRICS:
        return f"Longest tested number of inputs up to which the accuracy is at least {HORIZON_METRICS[metric]:.2f}"
    return {
        OOD: f"Accuracy at the length of the test{scale}",
        VALIDATION: f"Accuracy on the validation set{scale}",
        "steps_trained": "Training steps",
        "seconds": "Seconds of training and testing",
    }[metric]


def _number(value: float | None, metric: str) -> str | None:
    if value is None:
        return None
    whole = metric in HORIZON_METRICS or (metric in _WHOLE and value >= 10)
    return f"{value:,.0f}" if whole else decimals(value)


def _heading(spread: Spread) -> str:
    return f"mean ({spread.heading})" if spread is Spread.BOOTSTRAP else f"mean ± {spread.heading}"


def _with_spread(row: Mapping[str, Any], spread: Spread, metric: str) -> str | None:
    text, value = _number(row["mean"], metric), row[spread.column]
    return text if text is None or value is None else f"{text} ± {_number(value, metric)}"


def _with_interval(row: Mapping[str, Any], metric: str) -> str | None:
    text, low, high = (_number(row[name], metric) for name in ("mean", "mean_low", "mean_high"))
    return text if low is None else f"{text} ({low} to {high})"


def _share(row: Mapping[str, Any]) -> str | None:
    """Return how many seeds learned, with the interval of their share."""
    if row["share_learned"] is None:
        return None
    return str(Share(row["seeds_learned"], row["seeds_measured"]))


def _failing(row: Mapping[str, Any]) -> str | None:
    """Return how many seeds that are perfect at trained lengths fail at the test length; None if none is perfect."""
    if row["share_failing"] is None:
        return None
    return f"{round(row['share_failing'] * row['num_perfect'])} of {row['num_perfect']}"
